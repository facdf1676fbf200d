"""OCR by RapidOCR: the models of PP-OCR that lie in its own package, run by onnxruntime. Nothing is
downloaded: the models are opened by their paths, before the door of the process is shut.

They read Chinese, Japanese, and all that is written in Latin letters.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rapidocr
from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

from app.documents.ocr import EngineFailed, Pixels, Seen, Sight

MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
MOST_THREADS = 4
TALL = 1.5
"""So many times as high as wide: a line that is written upwards or downwards."""
LEAST_TALL = 2
USUAL_LENGTH = 8.0
"""In heights of the line: such are tried both ways round."""
NUM_TRIED = 4
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
                # One line after the other: six at once take half a gigabyte more.
                "Rec.rec_batch_num": 1,
                "EngineConfig.onnxruntime.intra_op_num_threads": num_threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                **{f"{part}.model_path": str(path) for part, path in paths.items()},
            }
        )
        # Loads both, which the shut door would forbid later.
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
            is_tall = [height >= TALL * width for width, height in map(_sides, found.boxes)]
            on_head = {
                kind: self._is_on_its_head(
                    [crop for crop, tall in zip(crops, is_tall, strict=True) if tall is kind]
                )
                for kind in set(is_tall)
            }
            upright = [
                np.rot90(crop, 2) if on_head[tall] else crop
                for crop, tall in zip(crops, is_tall, strict=True)
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
        return Sight(lines, _quarters(is_tall, on_head))

    def _is_on_its_head(self, crops: Sequence[Any]) -> bool:
        """Whether lines are read with more confidence the other way round. The model that comes
        for this takes long lines for turned ones; what reads them knows better."""
        few = sorted(crops, key=lambda crop: abs(crop.shape[1] / crop.shape[0] - USUAL_LENGTH))
        few = few[:NUM_TRIED]
        both = [*few, *(np.rot90(crop, 2) for crop in few)]
        scores = self._rapid.recognize_txt(both).scores
        return float(sum(scores[len(few) :])) > float(sum(scores[: len(few)]))


def _quarters(is_tall: Sequence[bool], on_head: Mapping[bool, bool]) -> int:
    """How a picture lies, as most of its lines do."""
    if sum(is_tall) > max(LEAST_TALL, len(is_tall) / 2):
        # A tall line is turned to the left before it is asked whether it is on its head.
        return 1 if on_head[True] else 3
    return 2 if on_head.get(False, False) else 0


def _sides(places: Any) -> tuple[float, float]:
    (left, top), (right, upper), _, (lower, bottom) = places
    return (
        float(np.hypot(right - left, upper - top)),
        float(np.hypot(lower - left, bottom - top)),
    )
