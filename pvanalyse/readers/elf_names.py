"""What the numbers in ELF files are called, as ``readelf -lSsW`` of GNU binutils prints them.

Numbers without a name here, such as those of a processor's or a vendor's own range, become hexadecimal. The meanings
are those of the System V ABI (gABI) and of ``include/elf/common.h`` of binutils.
"""

from __future__ import annotations

MACHINE_X86_64 = 62
MACHINE_IPU = 248  # EM_GRAPHCORE_IPU
ABI_NONE, ABI_GNU, ABI_FREEBSD = 0, 3, 9
OTHER = -1  # a machine or an ABI without names of its own

LOAD = 1  # PT_LOAD
SYMBOL_TABLE, SYMBOL_SECTION_INDICES = 2, 18  # SHT_SYMTAB, SHT_SYMTAB_SHNDX

_IPU_ARCHITECTURES = {0x01: "Ipu1", 0x02: "Ipu2", 0x21: "Ipu21"}  # by the low byte of e_flags

_SEGMENT_TYPES = {
    0: "NULL",
    LOAD: "LOAD",
    2: "DYNAMIC",
    3: "INTERP",
    4: "NOTE",
    5: "SHLIB",
    6: "PHDR",
    7: "TLS",
    0x6474E550: "GNU_EH_FRAME",
    0x6474E551: "GNU_STACK",
    0x6474E552: "GNU_RELRO",
    0x6474E553: "GNU_PROPERTY",
    0x6474E554: "GNU_SFRAME",
}
_SECTION_TYPES = {
    0: "NULL",
    1: "PROGBITS",
    SYMBOL_TABLE: "SYMTAB",
    3: "STRTAB",
    4: "RELA",
    5: "HASH",
    6: "DYNAMIC",
    7: "NOTE",
    8: "NOBITS",
    9: "REL",
    10: "SHLIB",
    11: "DYNSYM",
    14: "INIT_ARRAY",
    15: "FINI_ARRAY",
    16: "PREINIT_ARRAY",
    17: "GROUP",
    SYMBOL_SECTION_INDICES: "SYMTAB SECTION INDICES",
    19: "RELR",
    0x6FFFFFF5: "GNU_ATTRIBUTES",
    0x6FFFFFF6: "GNU_HASH",
    0x6FFFFFF7: "GNU_LIBLIST",
    0x6FFFFFFD: "VERDEF",
    0x6FFFFFFE: "VERNEED",
    0x6FFFFFFF: "VERSYM",
}
_SYMBOL_TYPES = {
    0: "NOTYPE",
    1: "OBJECT",
    2: "FUNC",
    3: "SECTION",
    4: "FILE",
    5: "COMMON",
    6: "TLS",
    8: "RELC",
    9: "SRELC",
}
_SYMBOL_BINDINGS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK"}
_SECTION_FLAGS = {
    0x1: "W",  # writable
    0x2: "A",  # takes up memory
    0x4: "X",  # executable
    0x10: "M",  # may be merged
    0x20: "S",  # holds strings
    0x40: "I",  # sh_info is a section index
    0x80: "L",  # order of linking matters
    0x100: "O",  # needs processing specific to the system
    0x200: "G",  # member of a group
    0x400: "T",  # thread-local
    0x800: "C",  # compressed
    0x80000000: "E",  # excluded from linking
}
_OS_FLAGS, _PROCESSOR_FLAGS = 0x0FF00000, 0xF0000000


def naming(machine: int, os_abi: int) -> tuple[int, int]:
    """Return the machine and ABI as far as they matter to the names here; all others are :data:`OTHER`."""
    return (
        machine if machine == MACHINE_X86_64 else OTHER,
        os_abi if os_abi in (ABI_NONE, ABI_GNU, ABI_FREEBSD) else OTHER,
    )


def architecture(machine: int, flags: int) -> str:
    """Return ``Ipu1``, ``Ipu2`` or ``Ipu21``, or such as ``machine 62`` for anything else."""
    known = _IPU_ARCHITECTURES.get(flags & 0xFF) if machine == MACHINE_IPU else None
    return known or f"machine {machine}"


def segment_type(number: int) -> str:
    """Return the name of a ``p_type``."""
    return _SEGMENT_TYPES.get(number) or hex(number)


def segment_flags(bits: int) -> str:
    """Return ``p_flags`` as letters in the columns of readelf, ``R E`` or ``RW``, without spaces at the end."""
    return "".join(letter if bits & bit else " " for letter, bit in (("R", 4), ("W", 2), ("E", 1))).rstrip()


def section_type(number: int, machine: int) -> str:
    """Return the name of a ``sh_type``."""
    if machine == MACHINE_X86_64 and number == 0x70000001:
        return "X86_64_UNWIND"
    return _SECTION_TYPES.get(number) or hex(number)


def section_flags(bits: int, machine: int, os_abi: int) -> str:
    """Return ``sh_flags`` as letters, from the lowest bit to the highest.

    All bits of the operating system's range that have no letter become one ``o``, those of the processor's range one
    ``p``; each other bit without a letter becomes an ``x``.
    """
    known = _SECTION_FLAGS | _special_flags(machine, os_abi)
    letters = []
    while bits:
        bit = bits & -bits
        bits ^= bit
        if bit in known:
            letters.append(known[bit])
        elif bit & _OS_FLAGS:
            letters.append("o")
            bits &= ~_OS_FLAGS
        elif bit & _PROCESSOR_FLAGS:
            letters.append("p")
            bits &= ~_PROCESSOR_FLAGS
        else:
            letters.append("x")
    return "".join(letters)


def _special_flags(machine: int, os_abi: int) -> dict[int, str]:
    """Return the letters that mean something on one machine or system only."""
    special = {}
    if os_abi in (ABI_GNU, ABI_FREEBSD):
        special[0x00200000] = "R"  # retained by the linker
    if os_abi in (ABI_NONE, ABI_GNU, ABI_FREEBSD):
        special[0x01000000] = "D"  # memory binding
    if machine == MACHINE_X86_64:
        special[0x10000000] = "l"  # may be larger than 2 GiB
    return special


def symbol_type(number: int, os_abi: int) -> str:
    """Return the name of the type in a ``st_info``."""
    if number == 10 and os_abi in (ABI_GNU, ABI_FREEBSD):
        return "IFUNC"
    return _SYMBOL_TYPES.get(number) or hex(number)


def symbol_binding(number: int, os_abi: int) -> str:
    """Return the name of the binding in a ``st_info``."""
    if number == 10 and os_abi == ABI_GNU:
        return "UNIQUE"
    return _SYMBOL_BINDINGS.get(number) or hex(number)
