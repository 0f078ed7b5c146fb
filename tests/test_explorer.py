"""The page that copies are explored with: its numbers, its text, and (where there is a Chromium) what clicks show."""

import html.parser
import json
import os
import re
import shutil
import sys
import time
import zlib
from base64 import b64decode
from collections import Counter

import engine
import numpy as np
import pytest
import strategies
import test_midgraph as dumps
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tiling
from tiling import F8F143, F16, CoordinateMapping, ExchangePhase, OwnerMap, TensorType, explorer, report
from tiling.cli import main

HOSTILE = "</title></script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'><b>&amp;\u2028"
SIDES = ("source", "destination")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="devices and links of other systems")


def case(name, source, destination, **more):
    return report.CopyCase(name, source, destination, CoordinateMapping(), **more)


def small_cases(name=HOSTILE):
    """Few tiles, and what can be special of them: multicast, pieces, padding, owner maps, sides of different sizes."""
    rows, columns = TensorType.sharded([64, 60], F16, 0, 8), TensorType.sharded([64, 60], F16, 1, 8)
    whole, linear = TensorType.replicated([64, 60], F16, 8), TensorType.linear([64, 60], F16, 8)
    padded = TensorType.tiled([10, 4], F16, [tiling.AxisTiling(0, 3, shard_padding_multiple=4, padding="Zero")])
    phases = (
        report.PhaseCase("run 0", (case("rows to columns", rows, columns),)),
        report.PhaseCase(
            "run 1",
            (
                case(name, columns, whole),
                case("to linear", TensorType.tiled([64, 60], F16, {0: 4, 1: 2}), linear),
                case("padded", padded, padded, destination_owners=OwnerMap(1)),
            ),
        ),
    )
    return report.Cases(name, ((name, phases),), notes=(name,))


# --- columns ---------------------------------------------------------------------------------------------------------


def rows_of(columns, *names):
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


@given(strategies.copies())
def test_columns_are_sums_of_the_list(made):
    if made["outside"] == "zero":
        return
    arguments = engine.arguments(made)
    del arguments["outside"]
    arguments["mapping"] = arguments["mapping"] or CoordinateMapping()
    copy = report.CopyCase("copy", **arguments)
    plan, columns = copy.plan(), explorer.copy_columns(copy)
    tiles = range(plan.device_tiles)
    pairs, words, sizes = Counter(), Counter(), {kind: Counter() for kind in ("sent", "received", "local")}
    loads = {name: Counter() for name in ("sent_words", "received_words", "sent_messages", "received_messages")}
    for source, _, size, ends in engine.transfers(plan):
        sizes["sent"][source, size] += 1
        loads["sent_messages"][source] += 1
        loads["sent_words"][source] += -(-size // 4)
        for destination, _ in ends:
            pairs[source, destination] += 1
            words[source, destination] += -(-size // 4)
            sizes["received"][destination, size] += 1
            loads["received_messages"][destination] += 1
            loads["received_words"][destination] += -(-size // 4)
    kept, runs = Counter(), Counter()
    for tile, _, size, _ in engine.local(plan):
        sizes["local"][tile, size] += 1
        runs[tile] += 1
        kept[tile] += size
    for name, load in {**loads, "local_runs": runs, "local_bytes": kept}.items():
        assert columns[name].tolist() == [load[tile] for tile in tiles], name
    assert rows_of(columns, "pair_source", "pair_destination", "pair_messages", "pair_words") == [
        (*pair, pairs[pair], words[pair]) for pair in sorted(pairs)
    ]
    for kind, counts in sizes.items():
        assert rows_of(columns, f"{kind}_tile", f"{kind}_size", f"{kind}_count") == [
            (*key, counts[key]) for key in sorted(counts)
        ]
    for side in SIDES:
        table = tiling.enumerate_shards(arguments[side], arguments[f"{side}_owners"], plan.device_tiles)
        assert columns[f"{side}_bytes"].tolist() == table.tile_bytes.tolist()
        assert columns[f"{side}_shard_start"].tolist() == table.start.ravel().tolist()
        assert columns[f"{side}_shard_tile"].tolist() == table.tile.tolist()


TOPS = [0, 1, *(2**k + d for k in (8, 16, 32, 53) for d in (-1, 0)), 2**62, 2**63 - 1]


@given(st.lists(st.sampled_from(TOPS) | st.integers(0, 2**63 - 1), max_size=5))
def test_narrow_columns_are_exact(numbers):
    column = explorer._narrow(np.array(numbers, np.int64))
    assert [int(x) for x in column.tolist()] == numbers
    kind, top = column.dtype.str[1:], max(numbers, default=0)
    wide = "u4" if top < 2**32 else "f8" if top < 2**53 else "u8"
    assert kind == ("u1" if top < 2**8 else "u2" if top < 2**16 else wide)


# --- the page's text -------------------------------------------------------------------------------------------------


class Parts(html.parser.HTMLParser):
    """The scripts of a page (attributes, text), its title, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self.title, self.inside = [], [], "", ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.inside == "title":
            self.title += data

    @property
    def facts(self):
        return json.loads(next(text for attributes, text in self.scripts if attributes.get("id") == "facts"))

    def columns(self, copy):
        blocks = [text for attributes, text in self.scripts if attributes.get("class") == "block"]
        data, at, found = zlib.decompress(b64decode(blocks[copy["block"]])), 0, {}
        for name, kind, length in copy["columns"]:
            found[name] = np.frombuffer(data, f"<{kind}", length, at)
            at += found[name].nbytes
        assert at == len(data)
        return found


@pytest.fixture(scope="module")
def example_page():
    pytest.importorskip("plotly")
    return explorer.page()


@pytest.fixture(scope="module")
def small_page():
    pytest.importorskip("plotly")
    return explorer.page(small_cases())


def test_the_examples_page_has_the_phases_numbers(example_page):
    assert len(example_page.encode()) < 4_000_000
    parts = Parts(example_page)
    ((_, phases),) = report.example_cases().graphs
    for told, phase in zip(parts.facts["phases"], phases, strict=True):
        plans = ExchangePhase([copy.plan() for copy in phase.copies])
        assert (told["transfers"], told["local_runs"]) == (plans.transfers, plans.local_runs)
        assert (told["bytes"], told["bound"]) == (plans.bytes, plans.endpoint_lower_bound)
        assert told["status"] == "built"
        columns = [parts.columns(copy) for copy in told["copies"]]
        for name in ("sent_words", "received_words"):
            assert sum(c[name].astype(np.int64) for c in columns).tolist() == getattr(plans, name).tolist()
        traffic = Counter()
        for c in columns:
            for source, destination, words in rows_of(c, "pair_source", "pair_destination", "pair_words"):
                traffic[source, destination] += words
        source, destination, words = plans.traffic
        assert dict(traffic) == {
            (s, d): w for s, d, w in zip(source.tolist(), destination.tolist(), words.tolist(), strict=True)
        }


def test_nothing_is_fetched(example_page):
    parts = Parts(example_page)
    policy = next(a["content"] for tag, a in parts.tags if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert not [tag for tag, a in parts.tags if tag in ("link", "img", "iframe", "object") or "src" in a or "href" in a]
    style = re.search(r"<style>(.*?)</style>", example_page, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in parts.scripts[-1][1]


def test_hostile_names_stay_text(small_page, example_page):
    parts, ordinary = Parts(small_page), Parts(example_page)
    assert parts.title == HOSTILE
    assert parts.facts["title"] == parts.facts["notes"][0] == HOSTILE
    assert parts.facts["phases"][0]["graph"] == parts.facts["phases"][1]["copies"][0]["name"] == HOSTILE

    def tags(parts):
        return [tag for tag, a in parts.tags if a.get("class") != "block"]

    assert tags(parts) == tags(ordinary)


def test_names_that_utf8_has_no_bytes_for(tmp_path):
    pytest.importorskip("plotly")
    made = small_cases("\udcff{{script}}")
    explorer.write_page(tmp_path / "page.html", made)
    assert Parts((tmp_path / "page.html").read_text("utf-8")).facts["title"] == "\udcff{{script}}"


def test_copies_that_are_alike_share_a_block():
    pytest.importorskip("plotly")
    made = small_cases()
    twice = Parts(explorer.page(report.Cases("twice", made.graphs * 2)))
    numbers = [copy["block"] for phase in twice.facts["phases"] for copy in phase["copies"]]
    assert numbers == [0, 1, 2, 3, 0, 1, 2, 3]
    assert sum(attributes.get("class") == "block" for attributes, _ in twice.scripts) == 4


# --- the file, and the command ---------------------------------------------------------------------------------------


def graph_text():
    values = [dumps.value(0, dumps.LINEAR), dumps.value(1, dumps.ROWS), dumps.value(2, dumps.LEFT)]
    return dumps.graph(values, [dumps.copy(0, 1, "Automatic"), dumps.copy(1, 2, "Automatic")])


def run(*arguments):
    return CliRunner().invoke(main, ["explore", *map(str, arguments)])


def test_the_command(tmp_path):
    pytest.importorskip("plotly")
    source, out = tmp_path / "graph.txt", tmp_path / "page.html"
    source.write_text(graph_text(), "utf-8")
    out.write_text("before")
    result = run(source, "-o", out)
    assert (result.exit_code, result.output) == (0, f"{out}: {out.stat().st_size:,} bytes\n")
    phases = Parts(out.read_text("utf-8")).facts["phases"]
    want = [row for row in report.of_file(source).rows if not row.copy]
    assert [(p["name"], p["transfers"], p["bound"]) for p in phases] == [(r.phase, r.transfers, r.bound) for r in want]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.txt", "page.html"]


def test_graphs_and_paths_are_sources(tmp_path):
    pytest.importorskip("plotly")
    path = tmp_path / "graph.txt"
    path.write_text(graph_text(), "utf-8")
    of_file = Parts(explorer.page(path)).facts["phases"]
    assert of_file == Parts(explorer.page(str(path))).facts["phases"]
    assert of_file == Parts(explorer.page(tiling.parse_midgraph(graph_text()))).facts["phases"]


def test_progress_counts_copies():
    pytest.importorskip("plotly")
    calls = []
    explorer.page(small_cases(), lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_what_is_wrong_leaves_everything_as_it_was(tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    out, log = tmp_path / "page.html", tmp_path / "bare.log"
    out.write_text("before")
    log.write_text("2026-03-01T08:00:00Z INFO prepared large physical exchange phase phase=3 transfers=many")
    bare = report.Cases("bare", ())
    for source, words in ((log, "column 84"), (bare, "no copies"), (tmp_path / "none", "No such file")):
        with pytest.raises((tiling.LayoutError, OSError), match=words):
            explorer.write_page(out, source)
    monkeypatch.setattr(
        "tiling.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        explorer.write_page(out, small_cases())
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.log", "page.html"]


def test_errors_are_one_line(tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    results = {
        "Is a directory": run("-o", tmp_path),
        "No such file": run("-o", tmp_path / "none" / "page.html"),
        "none.log": run(tmp_path / "none.log", "-o", tmp_path / "page.html"),
    }
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    results["pip install 'tensor-tiling[explore]'"] = run("-o", tmp_path / "page.html")
    for words, result in results.items():
        assert result.exit_code == 2
        assert re.fullmatch(r"tiling: error: .*\n", result.stderr)
        assert words in result.stderr
    assert not list(tmp_path.iterdir())


@POSIX
def test_a_device_is_not_replaced():
    pytest.importorskip("plotly")
    with pytest.raises(tiling.FieldError, match="not a regular file"):
        explorer.write_page("/dev/null", small_cases())


@POSIX
def test_links_stay(tmp_path):
    pytest.importorskip("plotly")
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    size = explorer.write_page(tmp_path / "link.html", small_cases())
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").stat().st_size == size


# --- in a browser ----------------------------------------------------------------------------------------------------


class Browser:
    """A page in headless Chromium, and a person's hands."""

    def __init__(self, driver):
        self.driver = driver

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def open(self, path, fragment=""):
        self.driver.get("about:blank")
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(path.as_uri() + fragment)
        self.until("return document.body.ariaBusy === 'false' || document.getElementById('fault')")
        assert self.js("return document.getElementById('fault')") is None

    def until(self, code, *arguments):
        end = time.monotonic() + 20
        while not (found := self.js(code, *arguments)):
            assert time.monotonic() < end, code
            time.sleep(0.02)
        return found

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def choose(self, phase, copy=-1):
        self.click(f"button[data-phase='{phase}'][data-copy='{copy}']")
        self.until("return document.body.ariaBusy === 'false'")

    def click_cell(self, side, tile):
        """Click a grid where a tile is drawn."""
        from selenium.webdriver import ActionChains

        div = self.driver.find_element("id", side)
        self.js("arguments[0].scrollIntoView({block: 'center'})", div)
        dx, dy = self.js(
            """const [div, tile] = arguments, area = div.querySelector(".nsewdrag").getBoundingClientRect();
            const all = div.getBoundingClientRect(), width = gridColumns(), {xaxis, yaxis} = div.layout;
            const at = (value, [from, to], start, size) => start + size * (value - from) / (to - from);
            return [at(tile % width, xaxis.range, area.left, area.width) - all.left - all.width / 2,
                at(Math.floor(tile / width), yaxis.range, area.bottom, -area.height) - all.top - all.height / 2]""",
            div,
            tile,
        )
        ActionChains(self.driver, duration=0).move_to_element_with_offset(div, round(dx), round(dy)).click().perform()
        self.until("return document.querySelector('#tile h3').innerText === arguments[0]", f"Tile {tile:,}")

    def press(self, keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(keys).perform()

    def partners(self, verb):
        """The whole table of partners: tile, words, messages."""
        self.js("document.querySelector(arguments[0])?.click()", f"#{verb} button.more")
        cells = [int(t.replace(",", "")) for t in self.texts(f"#{verb} td.number")]
        return list(zip(cells[::3], cells[1::3], cells[2::3], strict=True))

    def owned(self):
        """Boxes, bytes and offsets of all shards, row by row."""
        self.js("document.querySelectorAll('#owned button.more').forEach(b => b.click())")
        rows = "[...document.querySelectorAll('#owned tbody tr')]"
        return self.js(f"return {rows}.map(row => [...row.cells].slice(2).map(cell => cell.innerText))")

    def check_quiet(self):
        """No errors, and nothing was asked for but the page itself."""
        assert self.driver.get_log("browser") == []
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert [url for url in asked if not url.startswith("data:")] == [self.driver.current_url.partition("#")[0]]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if None in found.values():
        pytest.skip(f"no {' or '.join(found)}")
    options = webdriver.ChromeOptions()
    options.binary_location = found["chromium"]
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
        *("disable-component-update", "disable-sync", "window-size=1280,800"),
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a sanitizer's, say
    driver = webdriver.Chrome(options, webdriver.ChromeService(found["chromedriver"], env=alone))
    yield Browser(driver)
    driver.quit()


@pytest.fixture(scope="module")
def example_path(example_page, tmp_path_factory):
    path = tmp_path_factory.mktemp("example") / "page.html"
    path.write_text(example_page, "utf-8")
    return path


@pytest.fixture(scope="module")
def small_path(small_page, tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "page.html"
    path.write_text(small_page, "utf-8")
    return path


def many(number, word):
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def wanted_flow(plans, tile, sends):
    """The heading and the partners of one tile, from the lists."""
    words = messages = 0
    found = {}
    for plan in plans:
        for source, _, size, ends in engine.transfers(plan):
            if sends and source == tile:
                words, messages = words - (-size // 4), messages + 1
            for destination, _ in ends:
                if tile == (source if sends else destination):
                    sums = found.setdefault(destination if sends else source, [0, 0])
                    sums[0] -= -size // 4
                    sums[1] += 1
                    if not sends:
                        words, messages = words - (-size // 4), messages + 1
    rows = sorted(((other, *sums) for other, sums in found.items()), key=lambda row: (-row[1], row[0]))
    verb, way = ("Sends", "to") if sends else ("Receives", "from")
    sums = f"{many(words, 'word')} in {many(messages, 'message')} {way} {many(len(rows), 'tile')}"
    return f"{verb} {sums}" if rows else f"{verb} nothing", rows


def wanted_shards(copies, tile):
    for copy in copies:
        for side in SIDES:
            of_side = getattr(copy, side), getattr(copy, f"{side}_owners")
            table = tiling.enumerate_shards(*of_side, copy.plan().device_tiles)
            shards = np.flatnonzero(table.tile == tile)
            for i in shards:
                bounds = zip(table.start[i], table.logical_end[i], table.physical_end[i], strict=True)
                box = ", ".join(f"{a}:{b}{f'+{c - b}' if c > b else ''}" for a, b, c in bounds)
                yield [f"[{box}]", f"{table.bytes[i]:,}", f"{table.offset[i]:,}"]
            if not len(shards):
                yield ["nothing", "0", ""]


def check_tile(browser, copies, tile):
    plans = [copy.plan() for copy in copies]
    for verb, sends in (("sends", True), ("receives", False)):
        heading, rows = wanted_flow(plans, tile, sends)
        assert browser.text(f"#{verb} h3") == heading
        assert browser.partners(verb) == rows
    assert browser.owned() == list(wanted_shards(copies, tile))
    local = [size for plan in plans for at, _, size, _ in engine.local(plan) if at == tile]
    kept = f"Keeps {many(sum(local), 'byte')} on the tile, in {many(len(local), 'local run')}."
    assert browser.text("#local") == (kept if local else "Keeps nothing on the tile: no local runs.")


def test_clicks_on_the_example(browser, example_path):
    browser.open(example_path)
    ((_, phases),) = report.example_cases().graphs
    assert browser.text("#name") == "phase 0"
    for phase, side, tile in ((4, "source", 348), (0, "destination", 1), (2, "source", 1471), (5, "destination", 46)):
        browser.choose(phase)
        browser.click_cell(side, tile)
        check_tile(browser, phases[phase].copies, tile)
    browser.choose(4, 1)
    assert browser.text("#name") == "phase 4: partials 1..29"
    browser.click_cell("destination", 0)
    check_tile(browser, phases[4].copies[1:], 0)
    assert "159,132" in browser.text("#figures")
    browser.check_quiet()


def test_the_grids_show_the_loads(browser, example_path):
    browser.open(example_path, "#1@1471")
    ((_, phases),) = report.example_cases().graphs
    plans = ExchangePhase([copy.plan() for copy in phases[1].copies])
    held = sum(tiling.enumerate_shards(copy.source, None, 1472).tile_bytes for copy in phases[1].copies)
    shown = browser.js("return [...document.querySelectorAll('.grid')].map(div => div.data[0].z.flat())")
    want = [w if w or h else None for w, h in zip(plans.sent_words.tolist(), held.tolist(), strict=True)]
    assert shown[0] == want
    assert [w or 0 for w in shown[1]] == plans.received_words.tolist()
    browser.js("const s = document.getElementById('measure'); s.value = 'messages'; s.onchange()")
    shown = browser.until(
        "const z = document.getElementById('source').data[0].z.flat(); return z[0] < 200 && z.map(w => w ?? 0)"
    )
    lists = [copy.plan().transfers for copy in phases[1].copies]
    assert shown == sum(np.bincount(x.source_tile, minlength=1472) for x in lists).tolist()
    browser.check_quiet()


def test_the_histogram(browser, example_path):
    browser.open(example_path, "#4")
    ((_, phases),) = report.example_cases().graphs
    plans = [copy.plan() for copy in phases[4].copies]
    lists = [engine.transfers(plan) for plan in plans]
    counts = Counter(size for rows in lists for _, _, size, _ in rows)
    bars = "const {x, y} = document.getElementById('sizes').data[0]; return [x, y]"
    assert browser.js(bars) == [[f"{size:,}" for size in sorted(counts)], [counts[size] for size in sorted(counts)]]
    browser.press("s")
    browser.until("return document.querySelector('#tile h3').innerText === 'Tile 348'")
    browser.js("const s = document.getElementById('scope'); s.value = 'tile'; s.onchange()")
    of_tile = Counter(size for rows in lists for tile, _, size, _ in rows if tile == 348)
    browser.until("return document.getElementById('sizes').data[0].y.reduce((a, b) => a + b, 0) === arguments[0]", 116)
    assert browser.js(bars)[1] == [of_tile[size] for size in sorted(of_tile)]
    browser.choose(0, 0)  # sizes of many kinds
    browser.choose(0, 1)
    sizes = [size for _, _, size, _ in engine.transfers(phases[0].copies[1].plan())]
    browser.js("const s = document.getElementById('scope'); s.value = 'all'; s.onchange()")
    octaves = Counter(2 ** (size.bit_length() - 1) for size in sizes)
    browser.until("return document.getElementById('sizes').data[0].y.reduce((a, b) => a + b, 0) === arguments[0]", 5804)
    assert browser.js(bars) == [[f"{low:,}+" for low in sorted(octaves)], [octaves[low] for low in sorted(octaves)]]
    browser.check_quiet()


def test_hands_on_the_keyboard(browser, example_path):
    from selenium.webdriver import Keys

    browser.open(example_path, "#3.0@47")
    heading = "return document.querySelector('#tile h3').innerText === arguments[0]"
    assert browser.js(heading, "Tile 47")
    browser.js("document.getElementById('source').focus()")
    for key, tile in ((Keys.ARROW_RIGHT, 48), (Keys.ARROW_DOWN, 94), (Keys.ARROW_LEFT, 93), (Keys.ARROW_UP, 47)):
        browser.press(key)
        browser.until(heading, f"Tile {tile}")
    browser.press("/")
    browser.press("1200" + Keys.ENTER)
    browser.until(heading, "Tile 1,200")
    browser.press(Keys.ESCAPE)
    browser.until(heading, "No tile chosen")
    browser.press("r")
    browser.until(heading, "Tile 9")
    browser.press("]")
    browser.until("return document.getElementById('name').innerText === 'phase 3: activations'")
    assert browser.js("return location.hash") == "#3.1@9"
    browser.press("/")
    browser.press("1472" + Keys.ENTER)  # one too many
    assert browser.js("return document.getElementById('search').matches(':invalid')")
    assert browser.js(heading, "Tile 9")
    browser.check_quiet()


def test_every_tile_of_a_small_page(browser, small_path):
    made = small_cases()
    browser.open(small_path)
    for number, phase in enumerate(made.graphs[0][1]):
        for copy in range(-1, len(phase.copies)):
            browser.choose(number, copy)
            copies = phase.copies if copy < 0 else phase.copies[copy : copy + 1]
            for tile in range(0, max(one.plan().device_tiles for one in copies), 1 if copy < 0 else 3):
                browser.click_cell(SIDES[tile % 2], tile)
                check_tile(browser, copies, tile)
    browser.check_quiet()


def test_hostile_names_in_a_browser(browser, small_path):
    browser.open(small_path, "#1.0@3")
    assert browser.js("return window.hit") is None
    assert browser.driver.title == HOSTILE
    assert browser.js("return document.querySelector('#phases h3').textContent") == HOSTILE
    assert HOSTILE in browser.js("return document.getElementById('name').textContent")
    assert browser.js("return document.querySelector('#owned td').textContent") == HOSTILE
    browser.check_quiet()


def test_sizes_that_numbers_do_not_hold(browser, tmp_path):
    huge = TensorType.replicated([2, 2**58 + 1], F8F143(0), 1)
    made = report.Cases("huge", (("", (report.PhaseCase("run 0", (case("a", huge, huge), case("b", huge, huge))),)),))
    explorer.write_page(tmp_path / "page.html", made)
    browser.open(tmp_path / "page.html", "#0@0")
    browser.choose(0, 0)
    assert browser.owned() == [[f"[0:2, 0:{2**58 + 1}]", f"{2**59 + 2:,}", "0"]] * 2
    assert f"Keeps {2**59 + 2:,} bytes" in browser.text("#local")
    browser.choose(0)
    assert f"Keeps {2**60 + 4:,} bytes" in browser.text("#local")
    browser.js("const s = document.getElementById('kind'); s.value = 'local'; s.onchange()")
    browser.until("return document.getElementById('sizes').data[0].x[0] === arguments[0]", f"{2**59 + 2:,}")
    browser.check_quiet()


def test_padding_that_numbers_do_not_hold(browser, tmp_path):
    cut = tiling.AxisTiling(0, 2, shard_padding_multiple=2**57, padding="Zero")
    padded = TensorType.tiled([16], F16, [cut])
    one = case("padded", padded, padded, destination_owners=OwnerMap(1), staging="both")
    explorer.write_page(tmp_path / "page.html", report.Cases("huge", (("", (report.PhaseCase("run 0", (one,)),)),)))
    browser.open(tmp_path / "page.html", "#0.0@1")
    check_tile(browser, [one], 1)
    browser.check_quiet()


@pytest.mark.parametrize("width", [390, 700, 1280, 1920])
def test_no_width_cuts_anything_off(browser, example_path, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.open(example_path, "#4@348")
        assert browser.js("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.js("return [...document.querySelectorAll('.grid')].every(d => d.clientWidth > 300)")
        browser.check_quiet()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
