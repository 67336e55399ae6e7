"""A headless Chromium for tests of pages: no message of the console, no request goes unseen."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("NETMARGIN_CHROMIUM") or shutil.which("chromium")
"""Debian's package `chromium` installs it."""

AXE = Path(__file__).parent / "axe" / "axe.min.js"
"""axe-core 4.14.1, which finds barriers for people with disabilities."""


@contextmanager
def open_browser() -> Iterator:
    """Chromium, driven by playwright; the test is skipped where one of them is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        # Root, as in containers, has no sandbox.
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def open_page(browser, path: Path, *, hash: str = "", width: int = 1280, **options) -> Iterator:
    """A page that is ready; when it is left, it must have said and requested nothing."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: said.append(f"error: {error}"))
    own = path.as_uri()
    tab.on(
        "request",
        lambda request: (
            said.append(request.url[:200])
            if not (request.url.split("#")[0] == own or request.url.startswith(("data:", "blob:")))
            else None
        ),
    )
    try:
        tab.goto(own + hash)
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        yield tab
        assert said == []
    finally:
        context.close()
