"""Object files of x86-64 in ELF, put together to an image that runs wherever it is copied to.

LLVM writes code that finds everything relative to itself (`Target.machine`), so what has to be known to link is where
sections stand to each other. Addresses of functions of others (memcpy) stand in slots, which are filled when the image
is loaded (image_loader.py); a call of one goes to a stub, which jumps to what its slot says. What else an object may
hold is refused: LLVM's own loader then takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dy2st.runtime.aot_cache.code_image import CodeImage, NotLinkable

_HEADER = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_WRITE, _ALLOC = 1, 2
_ADDRESS, _RELATIVE, _BY_SLOT = (1,), (2, 4), (9, 41, 42)
"""Relocations: an address, what is relative to the place where it stands, what is relative and means a slot."""
_CALL = 4
_PAGE = 4096
_STUB = b"\xff\x25"  # jmp [rip + x]
_MAGIC = b"\x7fELF\x02\x01\x01"
_X86_64 = b"\x3e\x00"
_UNWINDING = ".eh_frame"


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    is_local: bool


class _Relocation(NamedTuple):
    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class _Object:
    """One object file, read."""

    def __init__(self, data: bytes):
        if data[:7] != _MAGIC or data[18:20] != _X86_64:
            raise NotLinkable("no object file of ELF for x86-64")
        self.data = data
        table, size, count, names = _HEADER.unpack_from(data)
        raw = [_SECTION.unpack_from(data, table + i * size) for i in range(count)]
        at = raw[names][4]
        self.sections = [_Section(self._text(at + s[0]), s[1], s[2], s[4], s[5], s[6], s[7], s[8]) for s in raw]
        self.symbols = [*self._symbols()]
        self.defined = {symbol.name for symbol in self.symbols if symbol.section and not symbol.is_local}

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def _symbols(self) -> Iterator[_Symbol]:
        for section in self.sections:
            if section.kind == _SYMTAB:
                names = self.sections[section.link].offset
                for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                    name, info, _, index, value, _ = _SYMBOL.unpack_from(self.data, at)
                    yield _Symbol(self._text(names + name), index, value, info >> 4 == 0)

    def loaded(self, writable: bool) -> Iterator[tuple[int, _Section, bytes]]:
        """Yield the sections that are in memory when the code runs, with their content."""
        for i, section in enumerate(self.sections):
            if not section.flags & _ALLOC or not section.size or section.name.startswith(_UNWINDING):
                continue
            if section.kind not in (_PROGBITS, _NOBITS):
                raise NotLinkable(f"section {section.name}")
            if bool(section.flags & _WRITE) == writable:
                zeros = section.kind == _NOBITS
                end = section.offset + section.size
                yield i, section, bytes(section.size) if zeros else self.data[section.offset : end]

    def relocations(self) -> Iterator[_Relocation]:
        """Yield what has to be filled in."""
        for section in self.sections:
            if section.kind == _RELA and not self.sections[section.info].name.startswith(_UNWINDING):
                for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                    offset, info, addend = _RELOCATION.unpack_from(self.data, at)
                    yield _Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend)


def link(objects: Sequence[bytes], *, repeated: bool = False) -> CodeImage:
    """Put object files together; NotLinkable where one holds what an image cannot.

    Several objects may have the same function only where they are `repeated`: one of them is then called.
    """
    return _Linker([_Object(data) for data in objects], repeated).image()


class _Linker:
    def __init__(self, objects: Sequence[_Object], repeated: bool):
        self.objects, self.repeated = objects, repeated
        self.content = bytearray()
        self.places: list[dict[int, int]] = [{} for _ in objects]
        """Where the sections of each object stand."""
        self.symbols: dict[str, int] = {}
        self.stubs: dict[str, int] = {}
        self.slots: dict[str, int] = {}
        self.addresses: list[tuple[int, int]] = []

    def image(self) -> CodeImage:
        self._place(writable=False)
        for one in self.objects:
            for relocation in one.relocations():
                self._reserve(one, relocation)
        self._align(_PAGE)
        writable = len(self.content)
        self._place(writable=True)
        self._name()
        for one, places in zip(self.objects, self.places, strict=True):
            for relocation in one.relocations():
                self._fill(one, places, relocation)
        for name, stub in self.stubs.items():
            self.content[stub : stub + 6] = _STUB + struct.pack("<i", self.slots[name] - stub - 6)
        outside = {name: slot for name, slot in self.slots.items() if name not in self.symbols}
        self.addresses += [(slot, self.symbols[name]) for name, slot in self.slots.items() if name in self.symbols]
        return CodeImage(bytes(self.content), writable, self.symbols, outside, self.addresses)

    def _align(self, to: int) -> None:
        self.content.extend(bytes(-len(self.content) % max(1, to)))

    def _room(self) -> int:
        """Return eight bytes of room."""
        self._align(8)
        self.content.extend(bytes(8))
        return len(self.content) - 8

    def _place(self, writable: bool) -> None:
        for one, places in zip(self.objects, self.places, strict=True):
            for i, section, content in one.loaded(writable):
                self._align(section.align)
                places[i] = len(self.content)
                self.content += content

    def _reserve(self, one: _Object, relocation: _Relocation) -> None:
        """Make room for the slot and the stub that a relocation needs."""
        symbol = one.symbols[relocation.symbol]
        called = relocation.kind == _CALL and not symbol.section and not self._has(symbol.name)
        if (called or relocation.kind in _BY_SLOT) and symbol.name not in self.slots:
            self.slots[symbol.name] = self._room()
        if called and symbol.name not in self.stubs:
            self.stubs[symbol.name] = self._room()

    def _has(self, name: str) -> bool:
        return any(name in one.defined for one in self.objects)

    def _name(self) -> None:
        for one, places in zip(self.objects, self.places, strict=True):
            for symbol in one.symbols:
                if symbol.section in places and symbol.name and not symbol.is_local:
                    if symbol.name in self.symbols and not self.repeated:
                        raise NotLinkable(f"{symbol.name} is defined twice")
                    self.symbols[symbol.name] = places[symbol.section] + symbol.value

    def _fill(self, one: _Object, places: dict[int, int], relocation: _Relocation) -> None:
        symbol, at = one.symbols[relocation.symbol], places[relocation.section] + relocation.offset
        if relocation.kind in _BY_SLOT and symbol.name:
            target = self.slots[symbol.name]
        elif symbol.section in places:
            target = places[symbol.section] + symbol.value
        elif symbol.name in self.symbols:
            target = self.symbols[symbol.name]
        elif relocation.kind == _CALL:
            target = self.stubs[symbol.name]
        else:
            raise NotLinkable(f"relocation {relocation.kind} of {symbol.name}")
        if relocation.kind in _ADDRESS:
            self.addresses.append((at, target + relocation.addend))
        elif relocation.kind in _RELATIVE or relocation.kind in _BY_SLOT:
            struct.pack_into("<i", self.content, at, target + relocation.addend - at)
        else:
            raise NotLinkable(f"relocation {relocation.kind}")
