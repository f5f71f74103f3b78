"""Hooks of the site: pages of the public names, files outside docs, and colours for code.

mkdocs calls the functions by name. Everything is read from source text; nothing is imported.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LINK = re.compile(r"\]\(([^)\s#]+)")


class ExampleSections(griffe.Extension):
    """Shows `Example:` in a docstring as `Examples:`, the one word that griffe knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of each object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^Example:", "Examples:", obj.docstring.value)


def on_config(config: Any) -> Any:
    """Add a page for each package that has public names to the navigation."""
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] += [
                {package: _page_of(package)} for package, names in find_public().items() if names
            ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what is generated: pages of public names, code colours, and files linked to."""
    public = find_public()
    for package, names in public.items():
        if names:
            text = write_package_page(package, names, public)
            files.append(File.generated(config, _page_of(package), content=text))
    light, dark = (HtmlFormatter(style=name) for name in ("default", "github-dark"))
    css = light.get_style_defs(".highlight") + dark.get_style_defs(
        "[data-bs-theme=dark] .highlight"
    )
    files.append(File.generated(config, "assets/code.css", content=css))
    for path in sorted(
        {target for page in files.documentation_pages() for target in _outside(page)}
    ):
        uri = f"repository/{path}"
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files outside docs to their copies on the site."""
    folder = Path(page.file.src_uri).parent

    def lead(link: re.Match[str]) -> str:
        path = _find_outside(folder, link[1])
        return f"]({os.path.relpath(f'repository/{path}', folder)}" if path else link[0]

    return LINK.sub(lead, markdown)


def _outside(page: File) -> list[str]:
    """Return the files outside docs that a page links to, from the repository's root."""
    if page.abs_src_path is None:
        return []
    folder = Path(page.src_uri).parent
    targets = LINK.findall(Path(page.abs_src_path).read_text(encoding="utf-8"))
    return [path for target in targets if (path := _find_outside(folder, target))]


def _find_outside(folder: Path, target: str) -> str | None:
    """Return the path from the root of a link target that lies outside docs, else None."""
    path = os.path.relpath(ROOT / "docs" / folder / target, ROOT)
    outside = not path.startswith(("docs/", "..")) and (ROOT / path).is_file()
    return path if outside and not target.startswith("http") else None


def _page_of(package: str) -> str:
    return f"reference/api/{package}.md"


def find_public() -> dict[str, dict[str, str]]:
    """Return {package: {public name: the full name of what it stands for}}."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(SOURCE.rglob("__init__.py"), key=lambda one: (len(one.parts), one)):
        package = ".".join(file.parent.relative_to(SOURCE).parts)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imports = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        found[package] = {
            name: imports.get(name, f"{package}.{name}")
            for name in _read_all(tree)
            if not name.startswith("__")
        }
    return {
        package: {n: _follow(t, found) for n, t in names.items()}
        for package, names in found.items()
    }


def _read_all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _follow(target: str, found: dict[str, dict[str, str]]) -> str:
    """Return where a name that one package takes from another is defined."""
    package, _, name = target.rpartition(".")
    further = found.get(package, {}).get(name, target)
    return target if further == target else _follow(further, found)


def write_package_page(
    package: str, names: dict[str, str], public: dict[str, dict[str, str]]
) -> str:
    """Return a page: each name in full, or a link where a package below documents it."""
    docstring = ast.get_docstring(
        ast.parse((SOURCE / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    )
    lines = [f"# {package}", "", docstring or "", ""]
    for name, target in names.items():
        home = _find_home(package, target, public)
        if home is None:
            lines += [f"::: {target}", "    options:", f"      heading: {package}.{name}", ""]
        else:
            lines += [f"## {package}.{name}", "", f"Described at [{target}][{target}].", ""]
    return "\n".join(lines)


def _find_home(package: str, target: str, public: dict[str, dict[str, str]]) -> str | None:
    """Return the package that documents a name in full, where it is another one than this."""
    homes = [other for other, names in public.items() if target in names.values()]
    homes.sort(key=lambda other: (not target.startswith(f"{other}."), -other.count("."), other))
    return None if homes[0] == package else homes[0]
