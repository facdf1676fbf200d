"""The catalogue: entries whole and free for any use, whose measures agree with each other."""

from dataclasses import replace

import pytest

from app.models.catalog import PERMISSIVE, CatalogModel, catalog, in_catalog, weight_type
from app.models.quantizations import EXPLAINED
from engine.backends.llama_cpp.gguf_header import BLOCKS

TYPES = {block.name for block in BLOCKS.values()}


def entries() -> list[CatalogModel]:
    return list(catalog())


@pytest.mark.parametrize("model", entries(), ids=lambda model: model.name)
def test_an_entry_is_whole_and_free_for_any_use(model: CatalogModel) -> None:
    assert model.licence in PERMISSIVE
    assert model.repo.count("/") == 1
    assert model.purpose and model.languages
    assert in_catalog(model.name.upper()) == model
    assert list(model.sizes.values()) == sorted(model.sizes.values())


@pytest.mark.parametrize("model", entries(), ids=lambda model: model.name)
def test_its_sizes_are_those_of_so_many_parameters(model: CatalogModel) -> None:
    """What a weight takes on the whole: more than the name says where a large table of words is
    finer, or is there twice, as in small models of large vocabularies."""
    bits = {"Q4_K_M": 4.9, "Q4": 4.9, "Q5_K_M": 5.75, "Q6_K": 6.6, "Q8_0": 8.5, "F16": 16.0}
    for name, size in model.sizes.items():
        assert 0.85 * bits[name] < size * 8 / model.parameters < 1.75 * bits[name], name
        assert weight_type(name) in TYPES


@pytest.mark.parametrize("model", entries(), ids=lambda model: model.name)
def test_its_measures_make_about_its_parameters(model: CatalogModel) -> None:
    attention = 2 * model.width * model.kv_heads * model.head_size + 2 * model.width**2
    feed_forward = 3 * model.width * model.feed_forward
    if model.active:
        # A mixture has many times what one token meets.
        return
    tables = model.width * model.words * (1 if model.tied else 2)
    counted = model.layers * (attention + feed_forward) + tables
    assert counted == pytest.approx(model.parameters * 1e9, rel=0.12)


def test_the_catalogue_begins_small_and_has_something_for_every_machine() -> None:
    sizes = [min(model.sizes.values()) for model in catalog()]
    assert sizes[0] < 0.5 and max(sizes) > 10
    assert [model.parameters for model in catalog()] == sorted(m.parameters for m in catalog())
    assert len({model.name for model in catalog()}) == len(catalog())


def test_the_usual_quantisations_are_explained() -> None:
    wanted = {"Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "Q4_0", "IQ4_XS", "Q3_K_M", "Q2_K", "F16", "BF16"}
    assert wanted <= set(EXPLAINED)
    assert not [text for text in EXPLAINED.values() if "\n" in text or len(text) > 90]


def test_a_bare_number_of_languages_says_what_it_counts() -> None:
    """It stands among other facts, without a label."""
    for model in catalog():
        begins_with_a_name = model.languages[0].isupper()
        assert begins_with_a_name or "languages" in model.languages, model.languages


def test_what_a_model_sees_by_is_downloaded_and_held_and_not_read_for_each_token() -> None:
    model = in_catalog("smolvlm-500m")
    assert model is not None and model.mmproj > 0
    blind = replace(model, mmproj=0.0)
    for name in model.sizes:
        more = round(model.mmproj * 1e9)
        assert model.num_bytes(name) == blind.num_bytes(name) + more
        assert model.shape(name).num_bytes == blind.shape(name).num_bytes + more
        assert model.shape(name).read_bytes == blind.shape(name).read_bytes
