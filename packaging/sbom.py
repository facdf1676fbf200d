"""The list of parts for programs that look for known faults: CycloneDX 1.6 as JSON.

Written with OWASP's own library and not by hand: the form has rules (unique references, what is
an expression and what a name) that it keeps, and it brings the schema that the tests check by.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from components import Component
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component as Part
from cyclonedx.model.component import ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

TYPES = {"model": ComponentType.MACHINE_LEARNING_MODEL, "interpreter": ComponentType.PLATFORM}


def sbom(found: Sequence[Component], version: str, made: datetime | None = None) -> str:
    """As JSON. The same parts give the same text when `made` is the same."""
    bom = Bom()
    bom.metadata.timestamp = made or datetime.now(UTC)
    program = part(
        Component(
            name="inglenook",
            version=version,
            licence="Apache-2.0",
            purl=f"pkg:generic/inglenook@{version}",
            role="program",
        ),
        ComponentType.APPLICATION,
    )
    bom.metadata.component = program
    parts = [part(each, TYPES.get(each.role, ComponentType.LIBRARY)) for each in found]
    for each in parts:
        bom.components.add(each)
    bom.register_dependency(program, parts)
    bom.serial_number = uuid.uuid5(
        uuid.NAMESPACE_URL, "\n".join(sorted(f"{each.bom_ref}" for each in (program, *parts)))
    )
    return JsonV1Dot6(bom).output_as_string(indent=2)


def part(component: Component, kind: ComponentType) -> Part:
    return Part(
        name=component.name,
        version=component.version,
        type=kind,
        bom_ref=f"{component.role}/{component.name}@{component.version}",
        purl=PackageURL.from_string(component.purl),
        description=component.role,
        licenses=[LicenseFactory().make_from_string(component.licence)],
    )
