"""The models in words, for the page's sheet that lists, downloads, uses and removes them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.amounts import bytes_in_words, duration
from app.models.beyond import too_large
from app.models.catalog import CatalogModel
from app.models.connections import Connection
from app.models.fit import ASKED_TOKENS, Fit, Verdict, size_verdict
from app.models.hub import FoundRepo, Offer
from app.models.library import Available, Listed, ModelLibrary
from app.models.quantizations import explained
from app.models.way import Download, DownloadState
from app.settings import ADAPTERS, Settings
from app.ui.adapters import adapter_row, choices
from engine.adapter import Adapter

CLASSES = {Verdict.FITS: "fits", Verdict.TIGHT: "tight", Verdict.NOT: "not"}
STATES = {
    DownloadState.RUNNING: "",
    DownloadState.PAUSED: "paused",
    DownloadState.FAILED: "stopped",
    DownloadState.DONE: "done",
}


def here(
    listed: Sequence[Listed],
    library: ModelLibrary,
    settings: Settings,
    coming: Sequence[dict[str, Any]],
    in_use: Path | None = None,
    adapters: Sequence[Adapter] = (),
) -> dict[str, Any]:
    """What the sheet opens with; the model `in_use` is changed by `adapters`. `coming` are the
    `downloads` of before the models were looked at."""
    rows = []
    for each in sorted(listed, key=lambda each: each.look.is_adapter):
        if each.look.is_adapter:
            rows.append(adapter_row(each))
            continue
        row = model_row(each, library, settings)
        if each.model.path == in_use and not each.look.problem:
            row["adapters"] = choices(adapters, listed, each.look.architecture)
        rows.append(row)
    return {
        "room": f"{bytes_in_words(library.room().available)} of memory are free for a model.",
        "is_measured": library.pace() is not None,
        "models": rows,
        "downloads": coming,
    }


def model_row(listed: Listed, library: ModelLibrary, settings: Settings) -> dict[str, Any]:
    """One model that is here. `problem` says why it cannot be used, or is empty."""
    model, look = listed.model, listed.look
    facts = [bytes_in_words(model.num_bytes), look.quantization, look.architecture, model.source]
    own = settings.by_model.get(str(model.path), {})
    row: dict[str, Any] = {
        "name": model.name,
        "facts": [each for each in facts if each],
        "path": str(model.path),
        "is_chosen": model.is_chosen,
        "can_be_removed": model.can_be_removed and not model.is_chosen,
        "problem": look.problem,
        "explained": explained(look.quantization),
        "own": {name: value for name, value in own.items() if name != ADAPTERS},
        "adapters": [],
        "details": [],
        "beyond": "",
        "instead": library.instead(listed),
    }
    if look.shape is not None and listed.fit is not None:
        shape, fit = look.shape, listed.fit
        each = shape.context.kv.bytes_per_token("q8_0" if fit.kv_type == "q8_0" else "f16")
        row |= fit_words(fit)
        row["beyond"] = too_large(fit.context_tokens, shape.trained_context)
        row["details"] = [
            ("Parameters", f"{shape.num_parameters / 1e6:,.0f} million"),
            ("Made for a context of", f"{shape.trained_context:,} tokens"),
            ("KV of a token", f"{bytes_in_words(each)} as {fit.kv_type}"),
            ("Context as loaded", f"{fit.context_tokens:,} tokens"),
            ("Memory as loaded", bytes_in_words(fit.needed_bytes)),
        ]
        if model.mmproj is not None:
            row["details"].append(("Pictures and sounds", f"with {model.mmproj.name}"))
    return row


def fit_words(fit: Fit) -> dict[str, str]:
    speed = ""
    if fit.tokens_per_s is not None and fit.first_token_s is not None:
        until = (
            f"{fit.first_token_s:.1f} s" if fit.first_token_s < 10 else duration(fit.first_token_s)
        )
        speed = (
            f"about {fit.tokens_per_s:,.0f} tokens/s; a question of {ASKED_TOKENS} tokens is read"
            f" in {until}"
        )
    return {"verdict": fit.verdict, "level": CLASSES[fit.verdict], "why": fit.why, "speed": speed}


def downloads(library: ModelLibrary) -> list[dict[str, Any]]:
    """Those that are not done yet."""
    return [
        download_row(each)
        for each in library.downloads.all()
        if each.state is not DownloadState.DONE
    ]


def download_row(download: Download) -> dict[str, Any]:
    parts = [f"{bytes_in_words(download.num_bytes)} of {bytes_in_words(download.total_bytes)}"]
    if download.bytes_per_s:
        parts.append(f"{bytes_in_words(download.bytes_per_s)}/s")
    if download.seconds_left is not None:
        parts.append(f"{duration(download.seconds_left)} left")
    if STATES[download.state]:
        parts.append(STATES[download.state])
    total = download.total_bytes or 1
    return {
        "name": download.name,
        "is_running": download.state is DownloadState.RUNNING,
        "share": min(1.0, download.num_bytes / total),
        "words": ", ".join(parts),
        "message": download.message,
    }


def available(models: Sequence[CatalogModel], found: Sequence[Available]) -> list[dict[str, Any]]:
    """The catalogue, each model with its sizes."""
    return [
        {
            "name": model.name,
            "title": model.title,
            "facts": [
                parameters_in_words(model.parameters),
                model.licence,
                model.languages,
                *(["thinks first"] if model.thinks else []),
            ],
            "purpose": f"{model.purpose[:1].upper()}{model.purpose[1:]}.",
            "usual": model.usual,
            "sizes": [
                {
                    "quantization": each.quantization,
                    "size": f"about {bytes_in_words(each.num_bytes)}",
                    "explained": explained(each.quantization),
                    "instead": f"{each.instead} fits." if each.instead else "",
                    **fit_words(each.fit),
                }
                for each in found
                if each.model == model
            ],
        }
        for model in models
    ]


def parameters_in_words(billions: float) -> str:
    if billions < 1:
        return f"{1000 * billions:.0f} million parameters"
    return f"{billions:g} billion parameters"


def found_rows(found: Sequence[FoundRepo]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.repo,
            "facts": [
                f"{each.num_downloads:,} downloads",
                each.licence or "no licence named",
                *(["for known people only"] if each.is_gated else []),
            ],
        }
        for each in found
    ]


def offer_rows(offers: Sequence[Offer], library: ModelLibrary) -> list[dict[str, Any]]:
    """Of a name at Hugging Face, whose measures are not known before it is here."""
    room = library.room()
    rows = []
    for offer in offers:
        verdict = size_verdict(offer.num_bytes, room)
        rows.append(
            {
                "quantization": offer.quantization or offer.files[0].name,
                "size": bytes_in_words(offer.num_bytes),
                "explained": explained(offer.quantization),
                "instead": "",
                "verdict": verdict,
                "level": CLASSES[verdict],
                "why": "",
                "speed": "",
            }
        )
    return rows


def connection_rows(connections: Sequence[Connection]) -> list[dict[str, str]]:
    return [
        {
            "at": datetime.fromtimestamp(each.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
            "host": each.host,
            "why": each.why,
        }
        for each in connections
    ]
