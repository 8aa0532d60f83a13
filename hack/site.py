"""Hooks of the documentation site (mkdocs.yml): pages made from code, and files beside docs/.

The pages of docs/ link to files of the repository. The site has copies of these files at the same
places, and a page with the content of each linked folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from hack.site_tables import titled

ROOT = Path(__file__).parents[1]
_BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_COPIED = (".pre-commit-config.yaml", "reserver/settings/configuration.schema.json")
_SHOWN = ("charts", "examples", "monitoring", "proto/reserver/v1", "scheduler-config")
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
_CLIENT = """\
# The Python client

`SyncClient` blocks, `Client` is for asyncio. [From Python](../python.md) has whole programs.

::: reserver.client
"""

_WORDS = """\
# Phases, policies and other words

[Events and conditions](../conditions.md) explains their reasons.

::: reserver.reservations.enums
    options: {show_if_no_docstring: true}
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/."""
    made = {
        "index.md": _flat((ROOT / "README.md").read_text()),
        **{name: _flat((ROOT / name).read_text()) for name in _BESIDE},
        **dict(_folders()),
        **dict(_crds()),
        "adr/index.md": _decisions(),
        "reference/conditions.md": _WORDS,
        "reference/client.md": _CLIENT,
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for folder in _SHOWN:
        for file in sorted((ROOT / folder).rglob("*.*")):
            if file.suffix in {".yaml", ".py", ".go", ".json", ".proto"}:
                path = str(file.relative_to(ROOT))
                files.append(File.generated(config, path, abs_src_path=str(file)))
    for name in _COPIED:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the repository lead to where its files are on the site."""
    del config, files
    if not page.file.src_uri.startswith(("reference/", "adr/", "charts/")):
        markdown = markdown.replace("](../", "](")
    tops = "adr|charts|examples|monitoring|proto|scheduler-config"
    folder = rf"\]\(((?:\.\./)*(?:{tops})[\w/-]*?)/?(?:README\.md)?\)"
    return re.sub(folder, r"](\1/index.md)", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let long names in tables break at their joints, flags nowhere, and title wide tables."""
    del page, config, files
    html = titled(html)
    cells = re.sub(r"<td.*?</td>", lambda cell: _CODE.sub(_jointed, cell[0]), html, flags=re.DOTALL)
    whole = r'<span class="flag">\g<0></span>'
    return re.sub(r"<code>(?:[^<]|<wbr>)*</code>", lambda code: _FLAG.sub(whole, code[0]), cells)


def _jointed(name: re.Match[str]) -> str:
    """Return a name with places where a line may break: behind a mark, and before a capital.

    Several words break between them, and between the values of a choice.
    """
    text = name[0].replace("\\|", "|")  # As GitHub shows a bar in a cell.
    if " " in text:
        return text.replace("|", "|<wbr>")
    return re.sub(r"[-_./:,=](?=\w)|[a-z](?=[A-Z])", r"\g<0><wbr>", text)


def _flat(markdown: str) -> str:
    """Return a page of the repository's root as a page of the site's."""
    return re.sub(r"\]\(docs/", "](", markdown)


def _decisions() -> str:
    """Return a page that lists the decisions."""
    files = sorted((ROOT / "docs/adr").glob("*.md"))
    titles = ((file.read_text().partition("\n")[0].lstrip("# "), file.name) for file in files)
    return "\n".join(["# Decisions\n", *(f"- [{title}]({name})" for title, name in titles)]) + "\n"


def _folders() -> Iterator[tuple[str, str]]:
    """Yield a page for each folder that links lead to."""
    for top in _SHOWN:
        for folder in [ROOT / top, *(f for f in (ROOT / top).rglob("*") if f.is_dir())]:
            shown = [f for f in sorted(folder.iterdir()) if f.suffix in {".yaml", ".proto", ".py"}]
            name = folder.relative_to(ROOT)
            parts = [f"## {f.name}\n\n{_code(f)}\n" for f in shown]
            about = folder / "README.md"
            text = about.read_text().replace("/docs/", "/") if about.exists() else f"# {name}\n"
            yield f"{name}/index.md", "\n".join((text, *parts))


def _code(file: Path) -> str:
    return f"````{file.suffix[1:]}\n{file.read_text()}````"


def _crds() -> Iterator[tuple[str, str]]:
    """Yield a page for each CRD."""
    for file in sorted((ROOT / "scheduler-config").rglob("crd*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "CustomResourceDefinition":
                kind = document["spec"]["names"]["kind"]
                yield f"reference/{kind.lower()}.md", _crd(document, kind)


def _crd(crd: Mapping[str, Any], kind: str) -> str:
    spec = crd["spec"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    api_version, plural = f"{spec['group']}/{version['name']}", spec["names"]["plural"]
    origin = f"`{api_version}`, from the CRD; `kubectl explain {plural}` says the same.\n"
    lines = [f"# {kind}\n", origin, f"{schema.get('description', '')}\n"]
    for part in ("spec", "status"):
        if part in schema["properties"]:
            lines += [f"## {part}\n", "| field | type | meaning |", "|---|---|---|"]
            lines += [*_fields(schema["properties"][part], ""), ""]
    if rules := list(_rules(schema, "")):
        lines += ["## Rules\n", "The API server refuses what breaks one of them:\n"]
        lines += [f"- `{path}`: {message}" for path, message in rules]
    return "\n".join(lines) + "\n"


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        where = f"{path}{name}"
        about = " ".join(field.get("description", "").split()).replace("|", "\\|")
        bounds = "; ".join((["required"] if name in needed else []) + [*_bounds(field)])
        yield f"| `{where}` | {_type(field)} | {about}{f' ({bounds})' if bounds else ''} |"
        yield from _fields(field.get("items", field), f"{where}{'[]' if 'items' in field else ''}.")


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("format", field.get("type", "")))


def _bounds(field: Mapping[str, Any]) -> Iterator[str]:
    if "default" in field:
        yield f"default {field['default']}"
    if "enum" in field:
        yield "one of " + ", ".join(map(str, field["enum"]))
    for word, said in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most")):
        if word in field:
            yield f"{said} {field[word]}" + (" characters" if word == "maxLength" else "")
    for word in ("maxItems", "maxProperties"):
        if word in field:
            yield f"at most {field[word]} of them"


def _rules(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"{path}{rule.get('fieldPath', '')}".lstrip("."), rule["message"]
    inner = {f".{name}": field for name, field in schema.get("properties", {}).items()}
    inner |= {"": schema.get("items"), ".*": schema.get("additionalProperties")}
    for name, field in inner.items():
        if field:
            yield from _rules(field, f"{path}{name}")
