"""`inglenook models`: what is here, and what a file is."""

from app.amounts import bytes_in_words
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.models.local import find_model, list_models, model_facts
from app.models.starter import STARTER_NOTICE, starter_model
from app.services import Services
from engine.config import DEFAULT_CONTEXT_TOKENS


async def models(services: Services, options: Options, console: Console) -> None:
    if options.action == "info":
        show_info(services, options, console)
    else:
        show_list(services, options, console)


def show_list(services: Services, options: Options, console: Console) -> None:
    found = list_models(services.paths, services.settings)
    if options.json:
        rows = [
            {
                "name": model.name,
                "path": str(model.path),
                "bytes": model.num_bytes,
                "starter": model.is_starter,
                "chosen": model.is_chosen,
            }
            for model in found
        ]
        write_json(console, {"models": rows})
        return
    for model in found:
        mark = "*" if model.is_chosen else " "
        console.write(
            f"{mark} {model.name:32} {bytes_in_words(model.num_bytes):>9}  {model.path}\n"
        )
    console.note(
        f"Put GGUF files into {services.paths.models} to see them here;"
        " `inglenook run --model NAME` starts the app with one."
    )


def show_info(services: Services, options: Options, console: Console) -> None:
    if options.text:
        path = find_model(services.paths, services.settings, options.text)
    else:
        path = services.model_path
    context = services.settings.context_tokens or DEFAULT_CONTEXT_TOKENS
    facts = model_facts(path, context)
    if options.json:
        write_json(console, facts.as_json())
        return
    console.write(
        f"{facts.name}\n"
        f"  file            {facts.path}\n"
        f"  architecture    {facts.architecture}\n"
        f"  parameters      {facts.parameters / 1e6:,.0f} million\n"
        f"  quantization    {facts.quantization}\n"
        f"  context         {facts.context:,} tokens\n"
        f"  KV per token    {bytes_in_words(facts.kv_bytes_per_token)}\n"
        f"  memory          about {bytes_in_words(facts.memory_bytes)} with a context of"
        f" {min(facts.context, context):,} tokens\n"
    )
    if path == starter_model():
        console.note(STARTER_NOTICE)
