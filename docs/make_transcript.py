"""From a clean clone to a report in a browser: runs it all, and writes docs/transcript.md.

``make transcript`` (``TESTS=0`` leaves out `make test`). It needs git, make, Chromium with its
driver, and REGBAYES_DATA or a network. Every command is run as it is printed, in a new folder.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE, PICTURES = HERE / "transcript.md", HERE / "images" / "transcript"
DESKTOP = {"width": 1000, "height": 1250, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}

CLONE = """
git clone --quiet {root} regbayes
cd regbayes
make demo
make test
"""
GESTURES = """
regbayes datasets gesture_phase -o gestures.csv
regbayes fit gestures.csv --label label --sequence-id sequence_id --time time -o gestures.model
regbayes inspect gestures.model
regbayes report gestures.model gestures.csv -o gestures.html
"""
NEWS = """
regbayes datasets newsgroup_counts -o news.csv
grep -E ',(sci\\.space|sci\\.med|rec\\.autos|rec\\.sport\\.hockey|label)$' news.csv > four.csv
regbayes fit four.csv --label label -o news.model
regbayes report news.model four.csv -o news.html
"""
SHOTS = (  # page, part of it, colours, screen, what it shows
    ("gestures", "overview", "light", DESKTOP, "Gestures: what was learned, and a video's states"),
    ("gestures", "parts", "dark", DESKTOP, "Gestures, dark: what the states mean"),
    ("gestures", "signal", "light", PHONE, "Gestures on a phone: a video and its states"),
    ("news", "overview", "light", DESKTOP, "20 Newsgroups: what was learned"),
    ("news", "answers", "dark", PHONE, "20 Newsgroups on a phone: which groups are confused"),
)


INTRODUCTION = """\
# From a clone to a report: a transcript

Written by `make transcript` (`docs/make_transcript.py`), which ran every command as it stands here,
in a new folder, and opened the pages in headless Chromium. Lines that begin with # say how long a
command took, on a machine that others used too.

## The two commands of README"""
ABOUT_GESTURES = """\
## Gestures, frame by frame

Seven videos of people who tell stories; every frame has the phase of the gesture. A hard
one: on the videos that are held out the simple baselines are ahead, and the command says so."""
ABOUT_NEWS = """\
## 20 Newsgroups

Four of the groups."""


class Shell:
    """Runs commands in one folder, and remembers what they said, also when it is started again."""

    def __init__(self, folder: Path, bin_: Path) -> None:
        self.folder, self.text, self.notes = folder, [], folder / "said.json"
        self.said = json.loads(self.notes.read_text("utf-8")) if self.notes.exists() else {}
        self.environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
        self.environment |= {"COLUMNS": "96", "NO_COLOR": "1", "TERM": "dumb"}

    def run(self, script: str) -> None:
        for command in script.strip().splitlines():
            print(f"$ {command}", flush=True)
            start = time.perf_counter()
            if command.startswith("cd "):
                self.folder = self.folder / command[3:]
                self.said[command] = f"$ {command}"
            if command not in self.said:
                done = subprocess.run(
                    command,
                    shell=True,
                    cwd=self.folder,
                    env=self.environment,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                if done.returncode:
                    raise SystemExit(f"{done.stdout}\n`{command}` ended with {done.returncode}")
                self.said[command] = self._told(command, done.stdout, time.perf_counter() - start)
                self.notes.write_text(json.dumps(self.said), encoding="utf-8")
            self.text.append(self.said[command])

    def _told(self, command: str, said: str, seconds: float) -> str:
        """The command and the last lines of what it said, without the folders of this machine."""
        lines = [line.rstrip() for line in said.splitlines() if line.strip()]
        lines = [line for line in lines if "file://" not in line]  # pip, about its own places
        if len(lines) > 40:
            lines = [*lines[:3], "[...]", *lines[-30:]]
        text = "\n".join([f"$ {command}", *lines])
        for path, name in self._names().items():
            text = text.replace(path, name)
        return f"{text}\n# {seconds:.0f} s" if seconds > 1 else text

    def _names(self) -> dict[str, str]:
        names = {str(self.folder.parent): "~", str(ROOT): "$REPOSITORY"}
        if data := os.environ.get("REGBAYES_DATA"):
            names = {data: "$REGBAYES_DATA", **names}
        return names

    def block(self) -> str:
        text, self.text = "\n".join(self.text), []
        return f"```console\n{text}\n```"


def photograph(folder: Path) -> list[str]:
    """Pictures of the pages in headless Chromium, and the Markdown that shows them."""
    from PIL import Image
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    PICTURES.mkdir(parents=True, exist_ok=True)
    shown = []
    try:
        for page, part, colours, screen, title in SHOTS:
            feature = {"name": "prefers-color-scheme", "value": colours}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            driver.get(f"{(folder / f'{page}.html').as_uri()}#{part}")
            driver.execute_script(f"document.getElementById({part!r}).scrollIntoView()")
            said = driver.get_log("browser")
            if said:
                raise SystemExit(f"{page}.html: {said}")
            image = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
            device = "phone" if screen is PHONE else "desktop"
            file = PICTURES / f"{page}-{part}-{device}-{colours}.png"
            image.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)
            shown.append(f"![{title}]({file.relative_to(HERE).as_posix()})")
    finally:
        driver.quit()
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-tests", action="store_true", help="leave out `make test`")
    parser.add_argument("--here", action="store_true", help="leave out the clone: this environment")
    parser.add_argument("--folder", type=Path, help="new by default; an old one goes on")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="regbayes-"))
    folder.mkdir(exist_ok=True, parents=True)
    venv = folder / "regbayes" / ".venv" / "bin"
    shell = Shell(folder, Path(sys.executable).parent if asked.here else venv)
    if asked.here:
        first = "This time they were left out (`--here`): an environment was there already."
    else:
        clone = CLONE.format(root=ROOT)
        shell.run(clone.replace("make test\n", "") if asked.no_tests else clone)
        first = shell.block()
    shell.run(GESTURES)
    gestures = shell.block()
    shell.run(NEWS)
    news = shell.block()
    shots = photograph(shell.folder)
    parts = [
        INTRODUCTION,
        first,
        ABOUT_GESTURES,
        gestures,
        *shots[:3],
        ABOUT_NEWS,
        news,
        *shots[3:],
    ]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{PAGE} written")


if __name__ == "__main__":
    main()
