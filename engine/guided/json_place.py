"""Where in a JSON text an answer stands, as far as the grammar engine does not say it."""

from dataclasses import dataclass

# More digits are no number that programs agree about, and a model may go on with them for ever.
MOST_DIGITS = 18
# With two digits an exponent stays in the range of a float.
MOST_EXPONENT_DIGITS = 2


@dataclass(slots=True)
class JsonPlace:
    """Fed with all bytes of a JSON text, in pieces. Owned by a matcher."""

    in_string: bool = False
    is_escaped: bool = False
    in_exponent: bool = False
    num_digits: int = 0
    """Those of the number that is being written, since its last sign that is no digit."""

    def feed(self, text: bytes) -> None:
        for byte in text:
            if self.in_string:
                self._feed_string(byte)
            elif 0x30 <= byte <= 0x39:
                self.num_digits += 1
            else:
                self.in_string = byte == 0x22
                is_sign = byte in b"+-" and not self.num_digits
                self.in_exponent = byte in b"eE" or (self.in_exponent and is_sign)
                self.num_digits = 0

    @property
    def num_digits_left(self) -> int:
        """How many digits more a number may have here."""
        most = MOST_EXPONENT_DIGITS if self.in_exponent else MOST_DIGITS
        return max(0, most - self.num_digits)

    def _feed_string(self, byte: int) -> None:
        if self.is_escaped:
            self.is_escaped = False
        elif byte == 0x5C:
            self.is_escaped = True
        elif byte == 0x22:
            self.in_string = False
