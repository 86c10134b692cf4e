"""A seeded catalogue of 20,000 products in SQLite, and what an agent may do with it."""

import hashlib
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast
from uuid import UUID

from coatcheck import Artifact, Bank, Glimpse, Kind
from coatcheck.runtime import RunTool

PRODUCTS = 20_000
MATCHING = 847
CATEGORY = "energy drink"
REGION = "north"
CHANNELS = {"store A": "north", "store B": "north", "store C": "north", "store D": "south"}
_OTHERS = ("water", "juice", "tea", "cola", "snack", "coffee")


class Product(TypedDict):
    id: str
    name: str
    brand: str
    channel: str
    price: float


def _glimpse(value: object) -> Glimpse:
    """Return how many products there are, by channel and brand, and what they cost."""
    products = cast("list[Product]", value)
    prices = [product["price"] for product in products]
    by_brand: defaultdict[str, list[float]] = defaultdict(list)
    for product in products:
        by_brand[product["brand"]].append(product["price"])
    brands = sorted(by_brand.items(), key=lambda brand: -len(brand[1]))
    channels = Counter(product["channel"] for product in products).most_common()
    mean = sum(prices) / len(prices)
    lines = [
        f"Product Set: {len(products)} products",
        "Channels: " + " · ".join(f"{name} ({n / len(products):.0%})" for name, n in channels),
        "Brands:",
        *(f"{name} ({len(of)}) ${min(of):.2f} — ${max(of):.2f}" for name, of in brands[:3]),
        f"+{len(brands) - 3} more brands",
        f"Price Range: ${min(prices):.2f} — ${max(prices):.2f} (mean: ${mean:.2f})",
    ]
    return Glimpse("\n".join(lines), {"productCount": len(products)})


KINDS = (
    Kind("product-set", prefix="ps", glimpse=_glimpse),
    Kind("scope", prefix="scope", glimpse=lambda ids: f"{len(cast('list[str]', ids))} channels"),
)


@dataclass
class Catalogue:
    """The database, and the lists of ids that its price changes were given."""

    database: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:"))
    received: list[str] = field(default_factory=list[str])
    """A digest of the ids of each price change, in order."""

    def __post_init__(self) -> None:
        rng = random.Random(847)
        self.database.execute("CREATE TABLE channels (id TEXT PRIMARY KEY, name, region)")
        self.database.execute(
            "CREATE TABLE products (id TEXT PRIMARY KEY, name, category, brand, channel, cents)"
        )
        channels = [(_uuid(rng), name, region) for name, region in CHANNELS.items()]
        self.database.executemany("INSERT INTO channels VALUES (?, ?, ?)", channels)
        matching = set(rng.sample(range(PRODUCTS), MATCHING))
        self.database.executemany(
            "INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    _uuid(rng),
                    f"Drink {at}",
                    CATEGORY if at in matching else rng.choice(_OTHERS),
                    f"brand {rng.choice('aaaaabbbbcccdefghijklmno')}",
                    rng.choice(channels)[0],
                    rng.randrange(199, 700),
                )
                for at in range(PRODUCTS)
            ],
        )
        self.before = self.prices()

    def prices(self) -> dict[str, int]:
        """Return what each product costs, in cents."""
        return dict(self.database.execute("SELECT id, cents FROM products"))

    def products(self, category: str) -> list[Product]:
        """Return the products of a category."""
        rows = self.database.execute(
            "SELECT p.id, p.name, brand, c.name, cents FROM products p JOIN channels c"
            " ON c.id = channel WHERE category = ? ORDER BY p.id",
            [category],
        )
        return [
            {"id": id_, "name": name, "brand": brand, "channel": channel, "price": cents / 100}
            for id_, name, brand, channel, cents in rows
        ]

    def channels(self, region: str) -> list[str]:
        """Return the ids of the channels of a region."""
        rows = self.database.execute(
            "SELECT id FROM channels WHERE region = ? ORDER BY id", [region]
        )
        return [id_ for (id_,) in rows]

    def raise_prices(self, ids: Sequence[str], channels: Sequence[str], percent: int) -> int:
        """Raise prices, rounded half up to cents. Return of how many products."""
        self.received.append(digest(ids))
        marks = ", ".join("?" * len(channels))
        return self.database.executemany(
            "UPDATE products SET cents = (cents * (100 + ?) + 50) / 100"
            f" WHERE id = ? AND channel IN ({marks})",
            [(percent, id_, *channels) for id_ in ids],
        ).rowcount

    def mean_price(self, ids: Sequence[str], channels: Sequence[str]) -> dict[str, float]:
        """Return how many of the products are in the channels, and their mean price in cents."""
        wanted, scope = set(ids), set(channels)
        rows = self.database.execute("SELECT id, channel, cents FROM products")
        cents = [price for id_, channel, price in rows if id_ in wanted and channel in scope]
        return {"products": len(cents), "mean_cents": sum(cents) / len(cents) if cents else 0}

    def is_as_wanted(self, actions: int, percent: int) -> bool:
        """Return whether each product costs what it has to, and no other was touched."""
        scope = set(self.channels(REGION))
        rows = self.database.execute("SELECT id, category, channel FROM products")
        wanted = dict(self.before)
        for id_, category, channel in rows:
            if category == CATEGORY and channel in scope:
                for _ in range(actions):
                    wanted[id_] = (wanted[id_] * (100 + percent) + 50) // 100
        return wanted == self.prices()


def tools(catalogue: Catalogue) -> list[Callable[..., object] | RunTool]:
    """Return what the agents may call. None of it knows of pointers but for what it banks."""

    async def resolve_products(category: str, bank: Bank) -> Artifact:
        """Find all products of a category, as a product set."""
        return await bank.put(catalogue.products(category), kind="product-set")

    async def resolve_scope(region: str, bank: Bank) -> Artifact:
        """Find the channels of a region, as a scope."""
        # What a tool banked itself is a pointer at any size, be it three ids.
        return await bank.put(catalogue.channels(region), kind="scope")

    async def change_prices(
        product_ids: list[str], channel_ids: list[str], percent: int
    ) -> dict[str, int]:
        """Raise prices by a percentage, of these products in these channels only."""
        changed = catalogue.raise_prices(product_ids, channel_ids, percent)
        return {"received": len(product_ids), "changed": changed}

    async def mean_price(product_ids: list[str], channel_ids: list[str]) -> dict[str, float]:
        """Return how many of these products are in these channels, and their mean price."""
        return catalogue.mean_price(product_ids, channel_ids)

    # Each change begins with the prices that the last one left.
    return [resolve_products, resolve_scope, RunTool(change_prices, parallel=False), mean_price]


def digest(ids: Sequence[str]) -> str:
    """Return what tells two lists of ids apart."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def _uuid(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))
