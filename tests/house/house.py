"""Checks the tree against tests/house/rules.py: house.py CHECK [ROOT]. Prints every breach as path:line: what; exit status 1 if any."""

import pathlib
import re
import subprocess
import sys

import rules

CODE = {".cc", ".h", ".cu", ".cuh"}
KNOWN = "tests/house/known.txt"


class House:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout.split("\n")
        self.files = sorted(f for f in listed if f and (self.root / f).is_file())
        self.breaches = []

    def text(self, file):
        return (self.root / file).read_text(errors="replace")

    def code(self, *prefixes):
        return [f for f in self.files
                if pathlib.Path(f).suffix in CODE and (not prefixes or f.startswith(tuple(p + "/" for p in prefixes)))]

    def breach(self, file, line, what):
        self.breaches.append(f"{file}:{line}: {what}")

    # Every #include of a project header goes where the table allows.
    def includes(self):
        for file in self.code("base", "runtime", "controller", "cli"):
            own = owner(file)
            if own is None:
                self.breach(file, 1, "its folder has no row in tests/house/rules.py")
                continue
            for number, line in enumerate(self.text(file).split("\n"), 1):
                match = re.match(r'#include "((?:base|proto|runtime|controller|cli|tests)/[^"]+)"', line)
                if not match:
                    if re.match(r'#include "[^/"]+"', line):
                        self.breach(file, number, "includes are written from the repository's root")
                    continue
                target = owner(match[1])
                if target != own and target not in rules.MAY_INCLUDE[own]:
                    self.breach(file, number, f"{own} may not include {target or match[1]}; allowed: {', '.join(rules.MAY_INCLUDE[own]) or 'nothing'}")

    # Pure files mention nothing that has an effect or an unrepeatable result.
    def purity(self):
        for file in self.code():
            if not is_pure(file):
                continue
            for number, line in enumerate(self.text(file).split("\n"), 1):
                for pattern, why in rules.IMPURE.items():
                    if re.search(pattern, line):
                        self.breach(file, number, f"not allowed in a pure file: {why}")
        for pure in rules.PURE:
            if not any(is_under(f, pure) for f in self.files):
                self.breach(pure, 1, "named pure in tests/house/rules.py, but there is no such file")

    # Sources of a library are compiled as one (cmake/PacelineUnity.cmake): a function of an unnamed namespace is that of all its files, and one of
    # the same name with other parameters might be taken for it without a word.
    def unnamed(self):
        places = {}
        for file in self.code("base", "runtime", "controller", "cli"):
            inside = False
            for number, line in enumerate(self.text(file).split("\n"), 1):
                if line.startswith("namespace {") or line == "}  // namespace":
                    inside = line.startswith("namespace")
                match = re.match(r"(?!struct|class|enum|using|template|namespace|union)[\w:][\w:<>,\s&*]*[\s&*](\w+)\(", line)
                if inside and file.endswith(".cc") and match:
                    places.setdefault((owner(file), match[1]), {}).setdefault(file, number)
        for (_, name), files in places.items():
            if len(files) > 1 and name not in rules.OVERLOADED:
                for file, number in files.items():
                    self.breach(file, number, f"{name} is a function of an unnamed namespace in {len(files)} files of one library")

    # Every source is named in the CMakeLists.txt of its folder (or of a folder above it), or by its whole path.
    def registered(self):
        anywhere = set()
        for cmake in (f for f in self.files if f.endswith(("CMakeLists.txt", ".cmake"))):
            anywhere.update(re.findall(r"\$\{CMAKE_SOURCE_DIR\}/(\S+\.(?:cc|cu))", self.text(cmake)))
        for file in self.code():
            path = pathlib.PurePosixPath(file)
            if path.suffix not in (".cc", ".cu") or file in anywhere:
                continue
            for folder in path.parents:
                cmake = self.root / folder / "CMakeLists.txt"
                if cmake.exists() and str(path.relative_to(folder)) in re.split(r"[\s()]+", cmake.read_text()):
                    break
            else:
                self.breach(file, 1, "is built by no CMakeLists.txt")

    def sizes(self):
        for file in self.files:
            if pathlib.Path(file).suffix not in CODE | {".py", ".ts", ".tsx", ".mjs", ".css", ".proto", ".cmake"}:
                continue
            lines = self.text(file).split("\n")
            if len(lines) > rules.HARD_LINES:
                self.breach(file, rules.HARD_LINES, f"{len(lines)} lines; the limit is {rules.HARD_LINES} (think of a split at {rules.SOFT_LINES})")
            for number, line in enumerate(lines, 1):
                if len(line) > rules.MAX_COLUMNS:
                    self.breach(file, number, f"{len(line)} columns; the limit is {rules.MAX_COLUMNS}")

    # A pure header that other folders use is tested at the mirrored place; headers that only their own folder uses are tested through those.
    def mirror(self):
        users = {}
        for file in self.code():
            for header in re.findall(r'#include "([^"]+)"', self.text(file)):
                users.setdefault(header, []).append(file)
        for header in (f for f in self.code() if f.endswith(".h") and is_pure(f)):
            folder = str(pathlib.PurePosixPath(header).parent)
            used_by = users.get(header, [])
            outside = [f for f in used_by if not f.startswith("tests/") and str(pathlib.PurePosixPath(f).parent) != folder]
            tested = any(f.startswith(f"tests/unit/{folder}/") for f in used_by)
            source = header[:-2] + ".cc"
            if (outside or not used_by) and not tested and source in self.files:
                self.breach(header, 1, f"is pure, is used by other folders, and is included by no test in tests/unit/{folder}")

    # Links between our own documents, and the sources that a document names, lead somewhere.
    def links(self):
        for file in (f for f in self.files if f.endswith(".md")):
            for number, line in enumerate(self.text(file).split("\n"), 1):
                for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                    if "://" not in target and not (self.root / pathlib.PurePosixPath(file).parent / target).exists():
                        self.breach(file, number, f"the link to {target} leads nowhere")
                for source in re.findall(r"`((?:base|proto|runtime|controller|cli|tests)/[\w/]+\.(?:h|cc|cu|py|proto))`", line):
                    if source not in self.files:
                        self.breach(file, number, f"there is no {source}")

    # A document's lines fit a screen. Code and pictures between fences are as wide as what they show.
    def prose(self):
        for file in (f for f in self.files if f.endswith(".md")):
            if not re.match(r"docs/|tests/.*README\.md$|(README|CONTRIBUTING)\.md$", file):
                continue
            fenced = False
            for number, line in enumerate(self.text(file).split("\n"), 1):
                fenced ^= line.lstrip().startswith("```")
                limit = rules.MAX_ROW if line.startswith("|") else rules.MAX_PROSE
                if not fenced and len(line) > limit:
                    self.breach(file, number, f"{len(line)} columns; the limit is {limit}")

    # Tests that a document names exist: `Suite.Case` of GoogleTest, or a part of a transcript below "## Suite.Case"; `test_something` of unittest.
    def named_tests(self):
        tests = [self.text(f) for f in self.files if f.startswith("tests/") and pathlib.Path(f).suffix in (".cc", ".py")]
        known = {f"{suite}.{case}" for text in tests for suite, case in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", text, re.MULTILINE)}
        known |= {name for text in tests for name in re.findall(r"^ +def (test_\w+)\(", text, re.MULTILINE)}
        transcripts = [self.text(f) for f in self.files if f.startswith("tests/") and f.endswith(".txt")]
        known |= {name for text in transcripts for name in re.findall(r"^## (\w+\.\w+)$", text, re.MULTILINE)}
        for file in (f for f in self.files if f.endswith(".md")):
            for number, line in enumerate(self.text(file).split("\n"), 1):
                for name in re.findall(r"`([A-Z]\w*\.[A-Z]\w*|test_\w+)`", line):
                    if name not in known:
                        self.breach(file, number, f"there is no test {name}")

    # A comment block opens with a subject, a test's name says the behaviour, and no test pins a sentence. No file has more breaches of
    # these than KNOWN allows it: "folder: file comments/names/sentences ...". `house.py lower` writes there what has become less.
    def language(self):
        known = self.known()
        for file, found in self.language_found().items():
            for kind, (breaches, allowed) in enumerate(zip(found, known.get(file, (0, 0, 0)))):
                if len(breaches) > allowed:
                    what = ("a comment opens without a subject", "a test's name does not say the behaviour", "a test pins a sentence")[kind]
                    for line in breaches:
                        self.breach(file, line, f"{what} (the file has {len(breaches)} of these, allowed: {allowed})")

    def lower(self):
        known, folders = self.known(), {}
        for file, found in self.language_found().items():
            allowed = known.get(file, (0, 0, 0)) if known else map(len, found)
            counts = [min(len(lines), most) for lines, most in zip(found, allowed)]
            if any(counts):
                folder, _, name = file.rpartition("/")
                folders.setdefault(folder, []).append(f"{name} {'/'.join(map(str, counts))}")
        (self.root / KNOWN).write_text("".join(f"{folder}: {'  '.join(files)}\n" for folder, files in sorted(folders.items())))

    def known(self):
        path = self.root / KNOWN
        known = {}
        for folder, files in (line.split(": ") for line in (path.read_text().splitlines() if path.exists() else [])):
            for name, counts in re.findall(r"(\S+) (\d+/\d+/\d+)", files):
                known[f"{folder}/{name}"] = tuple(map(int, counts.split("/")))
        return known

    # By file the lines of its comments, its tests' names and its sentences.
    def language_found(self):
        found = {}
        for file in self.files:
            if pathlib.Path(file).suffix not in CODE | {".py"}:
                continue
            text, mark = self.text(file), "#" if file.endswith(".py") else "//"
            lines = text.split("\n")
            comments = [n for n, line in enumerate(lines, 1) if re.match(rf"\s*{mark} {rules.NO_SUBJECT}", line)
                        and (n == 1 or not lines[n - 2].lstrip().startswith(mark))]
            names, sentences = [], []
            if file.startswith("tests/"):
                for match in re.finditer(r"(?m)^(?:TYPED_)?TEST(?:_[FP])?\(\w+,\s*(\w+)\)|^ +def test_(?:\d+_)?(\w+)\(", text):
                    if re.match(rules.NO_BEHAVIOUR, match[1] or match[2].capitalize()):
                        names.append(text.count("\n", 0, match.start()) + 1)
                for match in re.finditer(r'HasSubstr\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text):
                    if match[1].count(" ") >= rules.SENTENCE_SPACES:
                        sentences.append(text.count("\n", 0, match.start()) + 1)
            if comments or names or sentences:
                found[file] = (comments, names, sentences)
        return found

    def words(self):
        for file in self.files:
            if pathlib.Path(file).suffix in {".gz", ".bin", ".npy", ".safetensors", ".png"}:
                continue
            for number, line in enumerate(self.text(file).split("\n"), 1):
                for pattern, why in rules.BANNED_WORDS.items():
                    if re.search(pattern, line):
                        self.breach(file, number, why)

    # A message is for people: codes and typed fields say what happened, and no code reads it.
    def messages(self):
        for file in self.code("base", "runtime", "controller", "cli"):
            if file in rules.WORDS_OF_OTHERS:
                continue
            for number, line in enumerate(self.text(file).split("\n"), 1):
                if re.search(rules.SEARCHED_MESSAGES, line.split("//")[0]):
                    self.breach(file, number, "code searches in a message; give it a code or a typed field")


def owner(path):
    """The row of MAY_INCLUDE that a path belongs to: its longest listed folder."""
    folder = pathlib.PurePosixPath(path).parent
    for candidate in (folder, *folder.parents):
        if str(candidate) in rules.MAY_INCLUDE:
            return str(candidate)
    return None


def is_under(file, pure):
    if pure.endswith("."):   # exactly this name, not what begins so
        return file in (pure + "h", pure + "cc")
    return file.startswith(pure + "/") or re.match(re.escape(pure) + r"[a-z0-9_]*\.(h|cc)$", file) is not None


def is_pure(file):
    return pathlib.Path(file).suffix in CODE and any(is_under(file, pure) for pure in rules.PURE)


def main():
    check = sys.argv[1]
    house = House(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2])
    getattr(house, check)()
    print("\n".join(house.breaches) or f"{check}: no breach in {len(house.files)} files")
    sys.exit(1 if house.breaches else 0)


if __name__ == "__main__":
    main()
