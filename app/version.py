"""The version: its one place. The build, `--version` and the packages read it here."""

VERSION = "0.1.0"
