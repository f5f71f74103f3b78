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
SESSION = re.compile(r"(?m)^>>> .*(?:\n.+)*")


class Examples(griffe.Extension):
    """Shows the examples of docstrings as code, however they are introduced."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of each object that is read."""
        if obj.docstring is not None:
            # griffe knows the section `Examples:`; lines of a session elsewhere need a fence.
            text = re.sub(r"(?m)^Example:", "Examples:", obj.docstring.value)
            obj.docstring.value = SESSION.sub(r"```pycon\n\g<0>\n```", text)


def on_config(config: Any) -> Any:
    """Add a page for each package that has public names to the navigation."""
    for section in config.nav:
        if "Reference" in section:
            pages = [{name: _page_of(name)} for name, names in find_public().items() if names]
            section["Reference"].append({"Python packages": pages})
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
    """Return a page: its own names in full, and links to those that other packages document."""
    docstring = ast.get_docstring(
        ast.parse((SOURCE / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    )
    own = {name: one for name, one in names.items() if not _find_home(package, one, public)}
    lines = [f"# {package}", "", docstring or "", ""]
    if len(own) < len(names):
        lines += ["| name | what it is |", "|---|---|"]
        for name, target in names.items():
            lines.append(f"| [{package}.{name}][{target}] | {read_first_line(target)} |")
        lines.append("")
    for name, target in own.items():
        options = {"heading": f"{package}.{name}", "toc_label": name}
        lines += [f"::: {target}", "    options:"]
        lines += [f"      {option}: {value}" for option, value in options.items()] + [""]
    return "\n".join(lines)


def read_first_line(target: str) -> str:
    """Return the first line of the docstring of a function or class, by its full name."""
    module, _, name = target.rpartition(".")
    path = SOURCE / module.replace(".", "/")
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if getattr(node, "name", None) == name:
            return (ast.get_docstring(node) or "").split("\n")[0].replace("|", "\\|")
    return ""


def _find_home(package: str, target: str, public: dict[str, dict[str, str]]) -> str | None:
    """Return the package that documents a name in full, where it is another one than this."""
    homes = [other for other, names in public.items() if target in names.values()]
    homes.sort(key=lambda other: (not target.startswith(f"{other}."), -other.count("."), other))
    return None if homes[0] == package else homes[0]
