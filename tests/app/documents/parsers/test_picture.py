"""Picture files: each picture is a page, upright, and none is decoded that is too large."""

import io
import struct
import zlib

import pytest
from PIL import Image

from app.documents.document import FileState, PageFlag, Unreadable
from app.documents.page_picture import PictureWish
from app.documents.parsers.page_pixels import pixels_of
from app.documents.parsers.pdf_picture import draw
from app.documents.png import check_png
from app.documents.sniff import sniff
from tests.app.documents.parsers.read import read
from tests.app.documents.pdf_file import PdfFile

RED, BLUE = (250, 0, 0), (0, 0, 250)


def half(first: tuple[int, int, int] = RED, second: tuple[int, int, int] = BLUE) -> Image.Image:
    """Red above, blue below; wider than high."""
    picture = Image.new("RGB", (60, 40), first)
    picture.paste(second, (0, 20, 60, 40))
    return picture


def saved(picture: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def near(pixel: object, color: tuple[int, int, int]) -> bool:
    return all(abs(int(one) - other) < 40 for one, other in zip(pixel, color, strict=True))  # type: ignore[call-overload]


def chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))


@pytest.mark.parametrize(
    ("form", "name"),
    [("PNG", "a.png"), ("JPEG", "a.jpg"), ("WEBP", "a.webp"), ("BMP", "a.bmp"), ("GIF", "a.gif")],
)
def test_a_picture_is_a_document_of_one_page(form: str, name: str) -> None:
    pages, facts = read(saved(half(), form), name)
    assert (facts.kind, facts.notice) == ("picture", "")
    (page,) = pages
    assert (page.text, page.label, page.flags) == ("", "1", {PageFlag.PICTURE_ONLY})
    (pixels,) = pixels_of(saved(half(), form), name, "", [1], 1000)
    assert pixels is not None and pixels.shape == (40, 60, 3)
    assert near(pixels[5, 30], RED) and near(pixels[35, 30], BLUE)


def test_a_tiff_has_as_many_pages_as_pictures() -> None:
    pictures = [half(), half(BLUE, RED), half(RED, RED)]
    data = saved(pictures[0], "TIFF", save_all=True, append_images=pictures[1:])
    pages, facts = read(data, "scan.tif")
    assert [page.label for page in pages] == ["1", "2", "3"] and facts.num_pages == 3
    second, first, none = pixels_of(data, "scan.tif", "", [2, 1, 9], 1000)
    assert second is not None and near(second[5, 30], BLUE)
    assert first is not None and near(first[5, 30], RED)
    assert none is None


def test_of_a_film_the_first_picture_counts() -> None:
    data = saved(half(), "GIF", save_all=True, append_images=[half(BLUE, RED)])
    assert len(read(data, "a.gif")[0]) == 1


def test_a_picture_with_a_wrong_ending_is_read_and_said() -> None:
    _, facts = read(saved(half(), "PNG"), "scan.pdf")
    assert facts.notice == "scan.pdf ends in .pdf and is a picture: it was read as that."


@pytest.mark.parametrize(("form", "name"), [("JPEG", "a.jpg"), ("TIFF", "a.tif")])
def test_it_is_turned_as_the_camera_was(form: str, name: str) -> None:
    exif = Image.Exif()
    # The left side of what is meant lies above.
    exif[0x0112] = 6
    data = saved(half(), form, exif=exif)
    (pixels,) = pixels_of(data, name, "", [1], 1000)
    assert pixels is not None and pixels.shape == (60, 40, 3)
    assert near(pixels[30, 35], RED) and near(pixels[30, 5], BLUE)
    picture = draw(data, name, "", PictureWish(number=1))
    assert (picture.width, picture.height) == (40, 60)


def test_too_many_pixels_are_refused_by_the_header() -> None:
    head = struct.pack(">II5B", 60_000, 60_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    wide = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II5B", 12_000, 9_000, 8, 2, 0, 0, 0))
    for data in (bomb, wide + chunk(b"IDAT", b"") + chunk(b"IEND", b"")):
        with pytest.raises(Unreadable, match="pixels, and pictures up to 100 million") as caught:
            read(data, "bomb.png")
        assert caught.value.state is FileState.TOO_LARGE
        assert list(pixels_of(data, "bomb.png", "", [1], 1000)) == [None]


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"II*\0" + bytes(20)])
def test_a_damaged_picture_is_said_to_be(data: bytes) -> None:
    with pytest.raises(Unreadable, match="damaged picture") as caught:
        read(data, "a.png")
    assert caught.value.state is FileState.DAMAGED


def test_a_picture_that_ends_early_is_a_page_that_cannot_be_looked_at() -> None:
    noise = Image.effect_noise((300, 300), 90)
    data = saved(noise, "PNG")[:-9000]
    assert len(read(data, "a.png")[0]) == 1
    assert list(pixels_of(data, "a.png", "", [1], 1000)) == [None]
    with pytest.raises(Unreadable):
        draw(data, "a.png", "", PictureWish(number=1))


def test_the_picture_itself_is_shown() -> None:
    picture = draw(saved(half(), "PNG"), "a.png", "", PictureWish(number=1, words="any"))
    check_png(picture.png, 60, 40)
    assert picture.boxes == ()
    with pytest.raises(Unreadable, match="no page 2"):
        draw(saved(half(), "PNG"), "a.png", "", PictureWish(number=2))


def test_a_fax_keeps_its_thin_lines_when_it_is_made_smaller() -> None:
    fax = Image.new("1", (1000, 400), 1)
    for x in range(0, 1000, 10):
        fax.paste(0, (x, 0, x + 1, 400))
    (pixels,) = pixels_of(saved(fax, "TIFF"), "a.tif", "", [1], 250)
    assert pixels is not None and pixels.shape == (100, 250, 3)
    assert all(pixels[50, x : x + 10, 0].min() < 250 for x in range(0, 240, 10))


def test_what_can_be_seen_through_lies_on_white() -> None:
    picture = Image.new("RGBA", (30, 30), (0, 0, 0, 0))
    (pixels,) = pixels_of(saved(picture, "PNG"), "a.png", "", [1], 1000)
    assert pixels is not None and pixels.min() == 255


def test_a_text_that_begins_like_a_picture_is_text() -> None:
    assert sniff(b"BMW has raised its prices.", "a.txt").kind == "txt"


def test_a_page_of_a_pdf_is_looked_at_upright_and_damaged_ones_are_left_out() -> None:
    file = PdfFile()
    file.page(b"1 0 0 rg 0 396 612 396 re f", extra=b"/Rotate 90")
    turned, none = pixels_of(file.data(), "a.pdf", "", [1, 2], 800)
    assert turned is not None and turned.shape == (618, 800, 3)
    # What was above lies to the right.
    assert near(turned[300, 700], (255, 0, 0)) and near(turned[300, 100], (255, 255, 255))
    assert none is None
