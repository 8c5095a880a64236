"""Chromium without a window, from the system's packages, driven by its own driver; nothing is downloaded for it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

PATIENCE_SECONDS = 300
"""Until something is given up that comes about at once on a machine with nothing else to do."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDED = (
    "needs Chromium, its driver and two packages: apt-get install chromium chromium-driver, pip install -e '.[browser]'"
)


def absent() -> bool:
    """Whether a part is missing. Fails instead on CI, where all of it is installed."""
    missing = (
        not any(map(shutil.which, BROWSERS))
        or shutil.which("chromedriver") is None
        or importlib.util.find_spec("selenium") is None
    )
    return missing and "CI" not in os.environ


needs_browser = pytest.mark.skipif(absent(), reason=NEEDED)


class Page:
    """A page in a browser whose width is that of a desk, or of a phone."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, what: str) -> Any:
        """What a script returns, once that is something."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        try:
            return WebDriverWait(self.driver, PATIENCE_SECONDS, 0.05).until(lambda _: self.run(script))
        except TimeoutException:
            pytest.fail(f"waited {PATIENCE_SECONDS} s for: {what}; the console says: {self.console()}")

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def one(self, selector: str) -> Any:
        (found,) = self.all(selector)
        return found

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def console(self) -> list[str]:
        """The console's messages since the last call."""
        return [f"{line['level']}: {line['message']}" for line in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses requested since the last call."""
        import json

        events = [json.loads(line["message"])["message"] for line in self.driver.get_log("performance")]
        return [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]


@contextlib.contextmanager
def chromium() -> Iterator[Page]:
    """A browser of its own, gone in the end."""
    from selenium import webdriver

    with tempfile.TemporaryDirectory(prefix="bpe-harness-browser-") as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = next(path for path in map(shutil.which, BROWSERS) if path)
        for argument in (
            "--headless=new",
            "--no-sandbox",  # it cannot be set up in most containers, and the page is our own
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_page_load_timeout(PATIENCE_SECONDS)
        driver.set_script_timeout(PATIENCE_SECONDS)
        try:
            yield Page(driver)
        finally:
            driver.quit()
