"""The look in Gradio's own variables: paper and ember, system fonts, one accent colour."""

from typing import Any

import gradio as gr

EMBER = gr.themes.Color(
    name="ember",
    c50="#fdf5f0",
    c100="#fae6db",
    c200="#f3cab4",
    c300="#e9a684",
    c400="#dc7f54",
    c500="#c8623a",
    c600="#ae4f2b",
    c700="#8f4025",
    c800="#733523",
    c900="#5f2e20",
    c950="#33160f",
)
PAPER = gr.themes.Color(
    name="paper",
    c50="#faf8f5",
    c100="#f3f0ea",
    c200="#e7e2d9",
    c300="#d5cec2",
    c400="#a8a094",
    c500="#7b746a",
    c600="#5c564e",
    c700="#443f39",
    c800="#2b2825",
    c900="#211f1c",
    c950="#191715",
)

SETTINGS: dict[str, Any] = {
    "body_background_fill": "*neutral_50",
    "body_background_fill_dark": "*neutral_950",
    "body_text_color": "*neutral_900",
    "body_text_color_dark": "#e9e4dc",
    "body_text_color_subdued": "*neutral_500",
    "body_text_color_subdued_dark": "#9c958a",
    "background_fill_primary": "#ffffff",
    "background_fill_primary_dark": "*neutral_900",
    "background_fill_secondary": "*neutral_100",
    "background_fill_secondary_dark": "*neutral_900",
    "block_background_fill": "transparent",
    "block_background_fill_dark": "transparent",
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_label_background_fill": "transparent",
    "block_title_text_weight": "500",
    "border_color_primary": "*neutral_200",
    "border_color_primary_dark": "*neutral_800",
    "input_background_fill": "#ffffff",
    "input_background_fill_dark": "*neutral_900",
    "input_border_color": "*neutral_200",
    "input_border_color_dark": "*neutral_700",
    "input_border_color_focus": "*primary_400",
    "input_border_color_focus_dark": "*primary_500",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 3px color-mix(in srgb, var(--primary-400) 22%, transparent)",
    "button_primary_background_fill": "*primary_600",
    "button_primary_background_fill_hover": "*primary_700",
    "button_primary_background_fill_dark": "*primary_600",
    "button_primary_background_fill_hover_dark": "*primary_500",
    "button_primary_text_color": "#ffffff",
    "button_primary_border_color": "transparent",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_dark": "transparent",
    "button_secondary_background_fill_hover": "*neutral_100",
    "button_secondary_background_fill_hover_dark": "*neutral_800",
    "button_secondary_border_color": "*neutral_200",
    "button_secondary_border_color_dark": "*neutral_700",
    "slider_color": "*primary_500",
    "slider_color_dark": "*primary_500",
    "link_text_color": "*primary_700",
    "link_text_color_dark": "*primary_300",
}


def theme() -> gr.themes.Base:
    """Only fonts that the reader's machine already has."""
    return gr.themes.Base(
        primary_hue=EMBER,
        secondary_hue=EMBER,
        neutral_hue=PAPER,
        radius_size="lg",
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    ).set(**SETTINGS)
