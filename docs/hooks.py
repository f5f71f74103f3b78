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
OUTSIDE = "repository/"  # the folder of the site for files outside docs
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
    _add_linked_files(files, config)
    return files


def _add_linked_files(files: Files, config: Any) -> None:
    """Add every file outside docs that a page links to, and those that these link to."""
    pages = list(files.documentation_pages())
    while pages:
        page = pages.pop()
        if page.abs_src_path is None:
            continue
        for target in LINK.findall(Path(page.abs_src_path).read_text(encoding="utf-8")):
            uri = _find_uri(page, target)
            if uri is not None and files.get_file_from_path(uri) is None:
                path = ROOT / uri.removeprefix(OUTSIDE)
                files.append(File.generated(config, uri, abs_src_path=str(path)))
                if path.suffix == ".md":
                    pages.append(files.src_uris[uri])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links to and from files outside docs, so that they work on the site."""
    folder = Path(page.file.src_uri).parent

    def lead(link: re.Match[str]) -> str:
        uri = _find_uri(page.file, link[1])
        return f"]({os.path.relpath(uri, folder)}" if uri else link[0]

    return LINK.sub(lead, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Add the elements that the theme's scripts need; without them the menus do not work."""
    # They switch two style sheets of highlight.js, which is not used here.
    styles = '<style id="hljs-light"></style><style id="hljs-dark"></style>'
    output = output.replace("</head>", f"{styles}</head>", 1)
    # They look headings up by a selector, which cannot begin with a digit.
    return re.sub(r'(<h\d id="|href="#)(?=\d)', r"\1part-", output)


def _find_uri(page: File, target: str) -> str | None:
    """Return the place on the site of a file that a page links to; None if it is no such file."""
    if page.abs_src_path is None or target.startswith("http"):
        return None
    path = os.path.relpath(Path(page.abs_src_path).parent / target, ROOT)
    if path.startswith("..") or not (ROOT / path).is_file():
        return None
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}{path}"


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
