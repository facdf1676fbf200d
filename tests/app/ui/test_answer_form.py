"""How a form for answers is chosen, written, told about, and kept, in a real browser."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from app.chat.answer_form import AnswerForm, MadeIn, Medium, Outcome
from app.chat.fields import Field, FieldKind, fields_of
from app.chat.forms import Verdict
from app.ui.answer_form import AT, TYPING_PAUSE_S, _told
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import ready_forms
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices, Script
from tests.visitor import Visitor, eventually

CSV = AnswerForm.of_ready(ready_forms()["csv"])
TABLE = '[{"city": "Rome", "people": 2.80}, {"city": "Oslo <i>", "capital": true}]'


def test_a_place_in_a_fault_is_a_link() -> None:
    words, _ = _told(None, Verdict("There is no <rule> in line 3, column 15."), False)
    assert f'href="{AT}3-15"' in words and "<rule>" not in words


def test_what_is_checked_afterwards_is_said_before_it_is_chosen() -> None:
    words, approximate = _told(CSV, Verdict(unenforced="no 'not' at the top"), True)
    assert "checked" in words and approximate["visible"]


def dialog(tab: Visitor) -> Locator:
    return tab.page.get_by_role("dialog", name="How the next answers come")


def answer_as(tab: Visitor) -> Locator:
    return tab.page.locator("#answer_as")


async def open_dialog(tab: Visitor, way: str) -> None:
    await answer_as(tab).click()
    await expect(dialog(tab)).to_be_visible()
    await dialog(tab).locator("#form_way").get_by_label(way, exact=True).check()


async def use(tab: Visitor) -> None:
    await dialog(tab).get_by_role("button", name="Use", exact=True).click()


async def choose_ready(tab: Visitor, title: str) -> None:
    await open_dialog(tab, "Ready-made")
    name = re.compile(rf"^\s*{title}\n")
    await dialog(tab).locator("#form_ready label").filter(has_text=name).click()
    await use(tab)
    await expect(dialog(tab)).to_be_hidden()
    await expect(answer_as(tab)).to_have_text(f"Answer as: {title}")


async def newest_id(services: FakeServices) -> str:
    return (await services.conversations.list(limit=1))[0].conversation_id


async def is_told(tab: Visitor, words: str) -> None:
    await expect(tab.page.locator("#form_verdict")).to_contain_text(words)


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestChoosing:
    async def test_a_new_conversation_starts_with_what_was_chosen_before_it(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        services.jobs.script = Script(pieces=["a,b\n", '1,"<b>x</b>"'])
        tab = await arrive()
        await choose_ready(tab, "CSV with a header")
        await tab.send("Numbers, please")
        await tab.sees_answer("tokens/s")
        conversation_id = await newest_id(services)
        assert (await services.conversations.get(conversation_id)).answer_form == CSV
        _, answer = await services.conversations.messages(conversation_id)
        assert (answer.made_in, answer.outcome) == (MadeIn(CSV), Outcome.WHOLE)
        cells = tab.page.locator("#chat .formed :is(th, td)")
        assert await cells.all_text_contents() == ["a", "b", "1", "<b>x</b>"]
        await expect(tab.page.locator("#chat .mark")).to_contain_text("Follows the form")

    async def test_the_choice_belongs_to_its_conversation(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        made = await services.conversations.create(title="With a form", answer_form=CSV)
        await services.tell(made.conversation_id, ["Q", "Plain words"])
        tab = await arrive()
        await tab.open("With a form")
        await expect(answer_as(tab)).to_have_text("Answer as: CSV with a header")
        await tab.sees_answer("Plain words")
        await tab.reload()
        await expect(answer_as(tab)).to_have_text("Answer as: CSV with a header")
        await choose_ready(tab, "Date")
        # An old answer stays what it was.
        assert await tab.texts("bot") == [await tab.last_answer()]
        assert "Plain words" in await tab.last_answer()
        stored = await services.conversations.get(made.conversation_id)
        assert stored.answer_form == AnswerForm.of_ready(ready_forms()["date"])
        await tab.page.get_by_role("button", name="New chat", exact=True).click()
        await expect(answer_as(tab)).to_have_text("Answer as: Text")

    async def test_text_is_chosen_again(self, services: FakeServices, arrive: Arrive) -> None:
        made = await services.conversations.create(title="Back to text", answer_form=CSV)
        await services.tell(made.conversation_id, ["Q", "a,b\n1,2"], made_in=MadeIn(CSV))
        tab = await arrive()
        await tab.open("Back to text")
        await open_dialog(tab, "Text")
        await use(tab)
        await expect(answer_as(tab)).to_have_text("Answer as: Text")
        assert (await services.conversations.get(made.conversation_id)).answer_form is None
        services.jobs.script = Script(pieces=["Just words."])
        await tab.page.get_by_role("button", name="Write another answer").click()
        await tab.sees_answer("Just words.")
        await expect(tab.page.locator("#chat .formed")).to_have_count(0)

    async def test_a_temporary_chat_keeps_it_in_memory(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        services.jobs.script = Script(pieces=["2026-11-30"])
        tab = await arrive()
        await tab.page.get_by_role("button", name="New temporary chat").click()
        await tab.sees("it is kept in memory only")
        await choose_ready(tab, "Date")
        await tab.send("When?")
        await tab.sees_answer("Follows the form")
        (temporary,) = await services.conversations.list_temporary()
        assert temporary.answer_form is not None
        await services.conversations.purge(temporary.conversation_id)

    async def test_a_form_of_the_users_own_is_offered_and_a_broken_file_is_told(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        folder: Path = services.grammars
        folder.mkdir()
        own, broken = folder / "mine.toml", folder / "bad.toml"
        own.write_text(
            'title = "Mine"\ndescription = "Two letters."\nkind = "regex"\nsource = "ab"'
        )
        broken.write_text("kind = 3")
        tab = await arrive()
        await choose_ready(tab, "Mine")
        await open_dialog(tab, "Ready-made")
        await expect(dialog(tab)).to_contain_text("bad.toml is no form")
        own.unlink()
        broken.unlink()

    async def test_a_ready_form_shows_what_it_is(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await open_dialog(tab, "Ready-made")
        await dialog(tab).locator("#form_ready label").filter(has_text="Rating").click()
        await expect(tab.page.locator("#form_example")).to_contain_text("One digit.")
        await expect(tab.page.locator("#form_example pre")).to_have_text("5")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestWriting:
    async def test_fields_are_built_one_by_one_with_the_keyboard(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await open_dialog(tab, "Form")
        keyboard, page = tab.page.keyboard, tab.page
        await page.get_by_label("Name of field 1").focus()
        await keyboard.type("name")
        await keyboard.press("Enter")
        await expect(page.get_by_label("Name of field 2")).to_be_focused()
        await keyboard.type("hue")
        await keyboard.press("Tab")
        await keyboard.type("one")
        await expect(page.get_by_label("Kind of field 2")).to_have_value("one of")
        await keyboard.press("Tab")
        await keyboard.press("Tab")
        await expect(page.get_by_label("Choices of field 2")).to_be_focused()
        await keyboard.type("red, blue")
        await keyboard.press("Tab")
        await keyboard.type("of the eyes")
        await page.get_by_label("needed").nth(1).uncheck()
        await page.get_by_label("Move field 2 up").click()
        await expect(page.get_by_label("Name of field 1")).to_have_value("hue")
        await is_told(tab, "The model is kept to this form.")
        await page.get_by_label("Several of these").check()
        await use(tab)
        await expect(answer_as(tab)).to_have_text("Answer as: Form")
        services.jobs.script = Script(pieces=['[{"hue": "red", "name": "Ann"}]'])
        await tab.send("Who?")
        await tab.sees_answer("Follows the form")
        form = (await services.conversations.get(await newest_id(services))).answer_form
        assert form is not None
        fields = fields_of(form.grammar.source)
        assert fields is not None and fields.is_list
        assert fields.fields == (
            Field(
                name="hue",
                kind=FieldKind.ONE_OF,
                is_needed=False,
                meaning="of the eyes",
                choices=("red", "blue"),
            ),
            Field(name="name"),
        )
        # It stands there when the sheet is opened again.
        await answer_as(tab).click()
        await expect(page.get_by_label("Choices of field 1")).to_have_value("red, blue")
        await expect(page.get_by_label("needed").first).not_to_be_checked()
        await expect(page.get_by_label("Name of field 2")).to_have_value("name")
        await page.get_by_label("Remove field 1").click()
        await expect(page.get_by_label("Name of field 1")).to_have_value("name")
        await expect(page.get_by_label("Name of field 1")).to_be_focused()

    async def test_fields_that_make_no_form_are_not_taken(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await open_dialog(tab, "Form")
        await use(tab)
        await is_told(tab, "There is no field yet")
        # What was asked before comes late, and does not take its place.
        await asyncio.sleep(2 * TYPING_PAUSE_S)
        await is_told(tab, "There is no field yet")
        await tab.page.get_by_label("Name of field 1").fill("a")
        await tab.page.get_by_role("button", name="Add a field").click()
        await tab.page.get_by_label("Name of field 2").fill("a")
        await is_told(tab, "Two fields are called “a”: rename field 2.")
        await use(tab)
        await expect(dialog(tab)).to_be_visible()
        await expect(answer_as(tab)).to_have_text("Answer as: Text")

    async def test_a_schema_is_judged_while_it_is_written(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await open_dialog(tab, "JSON Schema")
        box = dialog(tab).locator("#form_schema textarea")
        await box.fill('{"type": "object", "properties": {"a": {"not": {}}}}')
        await is_told(tab, "#/properties/a")
        await use(tab)
        await expect(dialog(tab)).to_be_visible()
        await dialog(tab).get_by_label("Follow it approximately").check()
        await is_told(tab, "checked afterwards")
        await use(tab)
        await expect(dialog(tab)).to_be_hidden()
        await expect(answer_as(tab)).to_have_text("Answer as: JSON Schema")

    async def test_a_pasted_schema_is_judged_too(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive(permissions=["clipboard-read", "clipboard-write"])
        await open_dialog(tab, "JSON Schema")
        await tab.page.evaluate("navigator.clipboard.writeText('{\"type\": ')")
        await dialog(tab).locator("#form_schema textarea").focus()
        await tab.page.keyboard.press("Control+v")
        await is_told(tab, "line 1, column 10")

    async def test_the_place_of_a_fault_is_a_way_to_it(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await open_dialog(tab, "Grammar")
        box = dialog(tab).locator("#form_grammar textarea")
        await box.fill('root ::= "a"\n  | nowhere')
        await is_told(tab, "There is no rule 'nowhere', which line 2, column 5 refers to")
        await tab.page.get_by_role("link", name="line 2, column 5").click()
        await expect(box).to_be_focused()
        assert await box.evaluate("box => box.value.slice(box.selectionStart)") == "nowhere"
        await box.fill('root ::= "a"')
        await is_told(tab, "The model is kept to this form.")

    async def test_choices_and_a_pattern_are_taken(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        pattern = "#form_pattern :is(input, textarea)"
        for way, selector, text, kind, name in (
            ("One of", "#form_choices textarea", "yes\nno", GrammarKind.CHOICE, "One of a list"),
            ("Pattern", pattern, "[0-9]+", GrammarKind.REGEX, "Pattern"),
        ):
            await open_dialog(tab, way)
            await dialog(tab).locator(selector).fill(text)
            await use(tab)
            await expect(dialog(tab)).to_be_hidden()
            await tab.send(f"As {way}")
            await tab.page.locator(f"#chat .mark:has-text('{name}')").wait_for()
            messages = await services.conversations.messages(await newest_id(services))
            assert messages[-1].made_in is not None
            assert messages[-1].made_in.form.grammar.kind is kind

    async def test_the_sheet_holds_the_focus_and_gives_it_back(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        tab = await arrive()
        await answer_as(tab).focus()
        await tab.page.keyboard.press("Enter")
        first = dialog(tab).locator("#form_way input:checked")
        await expect(first).to_be_focused()
        await tab.page.keyboard.press("Shift+Tab")
        await expect(dialog(tab).get_by_role("button", name="Cancel")).to_be_focused()
        await tab.page.keyboard.press("Tab")
        await expect(dialog(tab).locator("#form_way input").first).to_be_focused()
        await tab.page.keyboard.press("Escape")
        await expect(dialog(tab)).to_be_hidden()
        await expect(answer_as(tab)).to_be_focused()

    @pytest.mark.parametrize("way", ["Form", "Ready-made", "JSON Schema", "Grammar"])
    async def test_every_control_has_a_name_and_fits_a_phone(
        self, services: FakeServices, arrive: Arrive, way: str
    ) -> None:
        tab = await arrive(viewport={"width": 390, "height": 700})
        await open_dialog(tab, way)
        nameless = (
            await dialog(tab)
            .locator("button, input, textarea, select")
            .evaluate_all(
                """controls => controls.filter(one => one.checkVisibility() && !(
                one.ariaLabel || one.textContent.trim() || one.title ||
                [...(one.labels ?? [])].some(label => label.textContent.trim())
            )).map(one => one.outerHTML)"""
            )
        )
        assert nameless == []
        assert await dialog(tab).evaluate("it => it.scrollWidth - it.clientWidth") <= 0
        await expect(dialog(tab).get_by_role("button", name="Use", exact=True)).to_be_in_viewport()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestReading:
    async def test_an_answer_can_be_seen_as_json_copied_and_kept(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        exact = '{"a":1.0,  "b": "&#x0003C; <b>"}'
        form = AnswerForm.of_ready(ready_forms()["json-object"])
        made = await services.conversations.create(title="To be copied")
        await services.tell(made.conversation_id, ["Q", exact], made_in=MadeIn(form))
        tab = await arrive(permissions=["clipboard-read", "clipboard-write"])
        await tab.open("To be copied")
        await expect(tab.page.locator("#chat .shape dd").first).to_have_text("1.0")
        await tab.page.get_by_text("Show as JSON").click()
        await expect(tab.page.locator("#chat .shape")).to_be_hidden()
        await expect(tab.page.locator("#chat .raw pre")).to_have_text(
            '{\n  "a": 1.0,\n  "b": "&#x0003C; <b>"\n}'
        )
        await tab.page.get_by_text("Show as a form").click()
        await expect(tab.page.locator("#chat .shape")).to_be_visible()
        await tab.page.locator("#chat .copy_all").click()
        await expect(tab.page.locator("#chat .copy_all")).to_have_text("Copied")
        assert await tab.page.evaluate("navigator.clipboard.readText()") == exact
        async with tab.page.expect_download() as downloading:
            await tab.page.locator("#chat .download").click()
        download = await downloading.value
        assert download.suggested_filename == "To be copied.json"
        assert Path(await download.path()).read_text(encoding="utf-8") == exact
        # The library's own would copy the markup.
        await expect(tab.page.get_by_label("Copy message").first).to_be_visible()
        await expect(tab.page.get_by_label("Copy message").last).to_be_hidden()

    async def test_a_table_grows_while_it_is_written(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        pieces = ["[", *(f'{{"n": {n}, "word": "word{n}"}},' for n in range(40)), '{"n": 40}]']
        services.jobs.script = Script(pieces=pieces, pace_s=0.05)
        tab = await arrive()
        await choose_ready(tab, "Table as JSON")
        await tab.send("Count")
        rows = tab.page.locator("#chat .formed tbody tr")
        seen = [0]

        async def is_complete() -> bool:
            seen.append(await rows.count())
            return seen[-1] == 41

        await eventually(is_complete, "the whole table")
        assert seen == sorted(seen) and len(set(seen)) > 3
        await tab.sees_answer("Follows the form")

    async def test_five_thousand_rows_come_when_they_are_asked_for(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        form = AnswerForm.of_ready(ready_forms()["table-as-json"])
        content = json.dumps([{"n": n, "name": f"<b>{n}</b>"} for n in range(5_000)])
        made = await services.conversations.create(title="Five thousand")
        await services.tell(made.conversation_id, ["Q", content], made_in=MadeIn(form))
        tab = await arrive()
        await tab.open("Five thousand")
        rows = tab.page.locator("#chat .formed tbody tr")
        await expect(rows).to_have_count(50)
        more = tab.page.locator("#chat .more")
        await expect(more).to_contain_text("50 of 5,000 shown")
        await more.get_by_role("button").click()
        await expect(rows).to_have_count(550)
        await expect(more).to_contain_text("550 of 5,000 shown")
        assert await rows.last.locator("td").all_text_contents() == ["549", "<b>549</b>"]
        for number in range(9):
            await more.get_by_role("button").click()
            await expect(rows).to_have_count(min(1_050 + 500 * number, 5_000))
        await expect(more).to_have_count(0)
        # The page still answers at once.
        await tab.composer.fill("Still here")
        await expect(tab.composer).to_have_value("Still here")
        await tab.page.get_by_text("Show as JSON").click()
        await tab.page.locator("#chat .all_text").click()
        await expect(tab.page.locator("#chat .raw pre")).to_contain_text('"n": 4999,')

    async def test_an_answer_that_is_cut_or_wrong_says_so(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        form = AnswerForm.of_own(GrammarKind.JSON_SCHEMA, '{"uniqueItems": true}', True)
        made = await services.conversations.create(title="Cut and wrong")
        await services.tell(
            made.conversation_id,
            ["Q", '{"a": "half'],
            made_in=MadeIn(form),
            finish_reason="grammar_incomplete",
        )
        wrong = MadeIn(form, True, "[1, 1] has non-unique elements at $")
        await services.tell(made.conversation_id, ["Q", "[1, 1]"], made_in=wrong)
        tab = await arrive()
        await tab.open("Cut and wrong")
        marks = tab.page.locator("#chat .mark")
        await expect(marks.first).to_contain_text("Cut off before its end")
        await expect(marks.last).to_contain_text("Does not follow the form: [1, 1] has non-unique")
        await expect(tab.page.locator("#chat .shape dd")).to_have_text("half")

    async def test_a_hostile_answer_makes_no_element_and_loads_nothing(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        image = "<img src=http://evil.test/a.png onerror=window.hurt=1>"
        made = await services.conversations.create(title="Hostile")
        answers = {
            Medium.JSON: json.dumps([{image: image}, {"b": {image: [image]}}]),
            Medium.CSV: f"{image},b\n{image},![x](http://evil.test/b.png)",
            Medium.TEXT: f"{image} ![x](http://evil.test/c.png)",
            Medium.MARKDOWN: f"- {image} ![x](http://evil.test/d.png)",
            Medium.SQL: f"SELECT '{image}'",
            Medium.MERMAID: f'flowchart TD\nA["{image}"]\nclick A "javascript:window.hurt=1"',
        }
        for medium, text in answers.items():
            form = AnswerForm(Grammar(GrammarKind.LARK, "start: /a/"), image, "", medium)
            await services.tell(made.conversation_id, ["Q", text], made_in=MadeIn(form))
        tab = await arrive()
        await tab.open("Hostile")
        await tab.page.locator("#chat .mermaid svg").wait_for()
        elements = "#chat .message :is(img, iframe, script, form, input, a[href^=javascript])"
        assert await tab.page.locator(elements).count() == 0
        assert await tab.page.evaluate("window.hurt") is None

    async def test_a_table_leaves_a_phone_its_width(
        self, services: FakeServices, arrive: Arrive
    ) -> None:
        row = {f"a column number {n}": "x" * 80 for n in range(12)}
        form = AnswerForm.of_ready(ready_forms()["table-as-json"])
        made = await services.conversations.create(title="Wide")
        await services.tell(made.conversation_id, ["Q", json.dumps([row])], made_in=MadeIn(form))
        tab = await arrive(viewport={"width": 390, "height": 700})
        await tab.page.get_by_role("button", name="Conversations", exact=True).click()
        await tab.open("Wide")
        await tab.page.locator("#chat .formed table").wait_for()
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 390
        chat = tab.page.locator("#chat .bubble-wrap")
        assert await chat.evaluate("chat => chat.scrollWidth - chat.clientWidth") <= 0
