"""The check for files of a package that import each other."""

from tools.check_cycles import find_problems, list_imports


def make_package(folder, **sources):
    package = folder / "package"
    for name, text in sources.items():
        path = package / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_imports_of_functions_and_of_types_count():
    source = """
import a.b
from a import c, D
if TYPE_CHECKING:
    from a.e import F
def f():
    from a import g
import os
"""
    modules = dict.fromkeys(["a", "a.b", "a.c", "a.e", "a.g", "a.h"])
    assert list_imports(source, modules) == {"a", "a.b", "a.c", "a.e", "a.g"}


def test_a_module_may_import_its_package_unless_that_imports_the_module(tmp_path):
    package = make_package(tmp_path, __init__="", a="from package import b", b="import package")
    assert find_problems(package) == []
    (package / "__init__.py").write_text("from package import b")
    assert find_problems(package) == ["cycle of imports: package -> package.b -> package"]


def test_a_cycle_through_other_files_is_found(tmp_path):
    package = make_package(
        tmp_path,
        __init__="",
        a="from package.inner import b",
        inner__in____init__="",
        inner__in__b="def f():\n    from package.c import x",
        c="if TYPE_CHECKING:\n    from package.a import y",
    )
    [problem] = find_problems(package)
    *cycle, last = problem.removeprefix("cycle of imports: ").split(" -> ")
    assert last == cycle[0]
    first = cycle.index("package.a")
    assert cycle[first:] + cycle[:first] == ["package.a", "package.inner.b", "package.c"]


def test_each_of_two_cycles_is_found(tmp_path):
    package = make_package(
        tmp_path,
        a="import package.b",
        b="import package.a",
        c="import package.d",
        d="import package.c",
    )
    assert len(find_problems(package)) == 2
