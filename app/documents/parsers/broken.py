"""What libraries raise when a file does not hold what it promises."""

BY_LIBRARIES = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
