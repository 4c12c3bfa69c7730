"""Pages taken apart: what every page of a report must be."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "img", "link", "hr"}


class Page(HTMLParser):
    """The tags, identifiers and texts of a page; fails where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], Counter(), [], [], []
        self.attributes, self.script = [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.script += data
        else:
            self.words.append(data)


def check_page(text):
    page = Page(text)
    twice = [name for name, number in Counter(page.ids).items() if number > 1]
    assert not twice
    for link in page.links:
        assert link.startswith("data:image/png;base64,") or link[1:] in page.ids, link
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not [a for a in page.attributes if a[1] == "id" and a[2].startswith("figure")]
    assert page.tags["script"] == 1
    assert not {"img", "iframe", "object", "embed", "link", "base"} & set(page.tags)
    (policy,) = (v for t, n, v in page.attributes if t == "meta" and v and "default-src" in v)
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http:" not in text
    assert "https:" not in text.replace("https://example.org", "")  # a hostile name has one
    return page
