"""OCR by RapidOCR: the models of PP-OCR that lie in its own package, run by onnxruntime. Nothing is
downloaded: the models are opened by their paths, before the door of the process is shut.

They read Chinese, Japanese, and all that is written in Latin letters.
"""

import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rapidocr
from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

from app.documents.ocr import EngineFailed, Pixels, Seen, Sight

MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
MOST_THREADS = 4
TALL = 1.5
"""So many times as high as wide: a line that is written upwards or downwards."""
LONG = 3.0
"""So many times as long as it is thick a line must be to say how its page lies."""
LEAST_TALL = 2
_FAILURES = (ONNXRuntimeError, cv2.error, ArithmeticError, LookupError, TypeError, ValueError)


class RapidEngine:
    def __init__(self) -> None:
        """Raises OSError for a package without its models."""
        folder = Path(rapidocr.__file__).parent / "models"
        paths = {part: folder / name for part, name in MODELS.items()}
        for path in paths.values():
            if not path.is_file():
                raise FileNotFoundError(f"{path.name} did not come with rapidocr")
        # Half of the processor: who chats meanwhile needs the rest.
        num_threads = max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))
        self._rapid = rapidocr.RapidOCR(
            params={
                "Global.log_level": "critical",
                "EngineConfig.onnxruntime.intra_op_num_threads": num_threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                **{f"{part}.model_path": str(path) for part, path in paths.items()},
            }
        )
        # Loads all three, which the shut door would forbid later.
        words = np.full((64, 256, 3), 255, np.uint8)
        cv2.putText(words, "Inglenook", (20, 40), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (0, 0, 0), 2)
        self.look(words)

    def look(self, pixels: Pixels) -> Sight:
        try:
            return self._look(np.ascontiguousarray(pixels[:, :, ::-1]))
        except _FAILURES as error:
            if "bad_alloc" in str(error) or "Insufficient memory" in str(error):
                raise MemoryError from error
            raise EngineFailed(type(error).__name__) from error

    def _look(self, pixels: Pixels) -> Sight:
        rapid = self._rapid
        picture, done = rapid.preprocess_img(pixels)
        try:
            crops, found = rapid.detect_and_crop(picture, done)
            _, turned = rapid.cls_and_rotate(crops)
            lie = _Lie([_sides(box) for box in found.boxes], turned.cls_res)
            upright = [
                np.rot90(crop, 2) if lie.is_on_its_head(number) else crop
                for number, crop in enumerate(crops)
            ]
            read = rapid.recognize_txt(upright)
        except rapidocr.main.RapidOCRError:
            # Its word for a picture without words.
            return Sight(())
        height, width = pixels.shape[:2]
        boxes = rapidocr.main.map_boxes_to_original(found.boxes, done, height, width)
        corners = [tuple((float(x), float(y)) for x, y in box) for box in boxes]
        lines = tuple(
            Seen(str(text), float(confidence), places)
            for text, confidence, places in zip(read.txts, read.scores, corners, strict=True)
            if text.strip()
        )
        return Sight(lines, lie.quarters)


class _Lie:
    """How a picture lies. Of a single line the model is often wrong; most of the longer ones say
    it for all, those that are tall apart from the others."""

    def __init__(self, sides: list[tuple[float, float]], labels: list[tuple[str, float]]) -> None:
        self._is_tall = [height >= TALL * width for width, height in sides]
        heads: dict[bool, list[bool]] = {True: [], False: []}
        for tall, (width, height), (label, _) in zip(self._is_tall, sides, labels, strict=True):
            if max(width, height) >= LONG * min(width, height):
                heads[tall].append("180" in str(label))
        self._num = {tall: len(each) for tall, each in heads.items()}
        self._on_head = {tall: sum(each) * 2 > len(each) for tall, each in heads.items()}

    def is_on_its_head(self, number: int) -> bool:
        return self._on_head[self._is_tall[number]]

    @property
    def quarters(self) -> int:
        if self._num[True] > max(LEAST_TALL, self._num[False]):
            # A tall line is turned to the left before it is asked whether it is on its head.
            return 1 if self._on_head[True] else 3
        return 2 if self._on_head[False] else 0


def _sides(places: Any) -> tuple[float, float]:
    (left, top), (right, upper), _, (lower, bottom) = places
    return (
        float(np.hypot(right - left, upper - top)),
        float(np.hypot(lower - left, bottom - top)),
    )
