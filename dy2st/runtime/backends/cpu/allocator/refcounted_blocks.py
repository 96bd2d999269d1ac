"""Memory of native code: blocks that count who holds them, from free lists of the run's context.

A block is 64 bytes of head and then its content, which therefore is aligned to 64 bytes. A context belongs to one run
at a time, so counting needs no atomic instructions. A null block is somebody else's memory (an argument, a constant):
it is never counted, never written into and never freed.

    context   0 `Run.call`  8 id of the run  16 makes blocks (budget.py)  24 calls in progress  32 rows of constants
              40 blocks ever made  48 addresses of library kernels  56 where the stack began  64 how many runs began
              72 when Python last looked at signals
              80 the error that it raised then: its kind, itself, its traceback
              104 bytes of the blocks that are held  112 the most that were held since the run began
              120 contexts of the parts of a loop (loop_parallel/), which have:  128 the context of their run
              136 whether the thread that called it works on the part;  144 whether parts are to end
              152 the arguments, and behind them an object that is held as if nobody else held it (buffer_donation.py)
              160 the plate (entry.py)
              168 bytes of all blocks  176 where the most of them stands (budget.py)  184 how many a part may have
              192... free blocks, one list a size class
    block     0 holders  8 size class  16 next free block  24 the block made before  32 the block made after
"""

from __future__ import annotations

HOST, RUN, ALLOCATE, DEPTH, CONSTANTS, BLOCKS, LIBRARY, STACK, TURN, LOOKED, ERROR = range(0, 88, 8)
LIVE, PEAK = ERROR + 24, ERROR + 32
PARTS, PARENT, CALLER, STOP, OBJECTS, PLATE = range(PEAK + 8, PEAK + 56, 8)
BYTES, LIMIT, SHARE = range(PLATE + 8, PLATE + 32, 8)
FREE = SHARE + 8
CLASSES = 256
CONTEXT_BYTES = FREE + 8 * CLASSES
MOST_PARTS = 16
"""How many parts a loop has at most."""
HEAD = 64
OK, RAISED, ELSEWHERE, INTERRUPTED = range(4)
"""What a native function returns: all went well; an exception stands in the run; run this on the interpreter; a
signal, or what else comes from outside, has raised an exception, which stands in the context."""

DECLARED = """\
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)
declare double @llvm.fabs.f64(double)"""

_TO_THE_LIST = f"""\
  %place = getelementptr i8, ptr %block, i64 8
  %class = load i64, ptr %place
  %lists = getelementptr i8, ptr %context, i64 {FREE}
  %list = getelementptr ptr, ptr %lists, i64 %class
  %first = load ptr, ptr %list
  %next = getelementptr i8, ptr %block, i64 16
  store ptr %first, ptr %next
  store ptr %block, ptr %list
  call void @dy2st.uncount(ptr %context, i64 %class)"""
_TO_THE_SYSTEM = """\
  call void @dy2st.leave(ptr %context, ptr %block)
  call void @dy2st.guarded.old(ptr %block)"""

_TEXT = f"""\
; the size class of a number of bytes: four classes to each power of two
define i64 @dy2st.class(i64 %bytes) alwaysinline {{
entry:
  %least = call i64 @llvm.smax.i64(i64 %bytes, i64 64)
  %zeros = call i64 @llvm.ctlz.i64(i64 %least, i1 true)
  %log = sub i64 63, %zeros
  %shift = sub i64 %log, 2
  %one = shl i64 1, %shift
  %less = sub i64 %one, 1
  %up = add i64 %least, %less
  %quarters = lshr i64 %up, %shift
  %four = shl i64 %log, 2
  %sum = add i64 %four, %quarters
  %class = sub i64 %sum, 4
  ret i64 %class
}}

; the bytes that the content of a block of this class has
define i64 @dy2st.content(i64 %class) alwaysinline {{
entry:
  %log = lshr i64 %class, 2
  %part = and i64 %class, 3
  %quarters = add i64 %part, 4
  %shift = sub i64 %log, 2
  %content = shl i64 %quarters, %shift
  ret i64 %content
}}

; count the bytes of a block of this class, which is held from now on
define void @dy2st.count(ptr %context, i64 %class) alwaysinline {{
entry:
  %content = call i64 @dy2st.content(i64 %class)
  %place = getelementptr i8, ptr %context, i64 {LIVE}
  %before = load i64, ptr %place
  %now = add i64 %before, %content
  store i64 %now, ptr %place
  %peak.place = getelementptr i8, ptr %context, i64 {PEAK}
  %peak = load i64, ptr %peak.place
  %most = call i64 @llvm.smax.i64(i64 %peak, i64 %now)
  store i64 %most, ptr %peak.place
  ret void
}}

; count the bytes of a block of this class no more
define void @dy2st.uncount(ptr %context, i64 %class) alwaysinline {{
entry:
  %content = call i64 @dy2st.content(i64 %class)
  %place = getelementptr i8, ptr %context, i64 {LIVE}
  %before = load i64, ptr %place
  %now = sub i64 %before, %content
  store i64 %now, ptr %place
  ret void
}}

; a block for that many bytes, held once; null when there is no memory
define ptr @dy2st.allocate(ptr %context, i64 %bytes) noinline {{
entry:
  %wrong = icmp ugt i64 %bytes, 1152921504606846976
  br i1 %wrong, label %none, label %fits
fits:
  %class = call i64 @dy2st.class(i64 %bytes)
  %lists = getelementptr i8, ptr %context, i64 {FREE}
  %list = getelementptr ptr, ptr %lists, i64 %class
  %first = load ptr, ptr %list
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %make, label %take
take:
  %next = getelementptr i8, ptr %first, i64 16
  %second = load ptr, ptr %next
  store ptr %second, ptr %list
  store i64 1, ptr %first
  call void @dy2st.count(ptr %context, i64 %class)
  ret ptr %first
make:
  %where = getelementptr i8, ptr %context, i64 {ALLOCATE}
  %new = load ptr, ptr %where
  %block = call ptr %new(ptr %context, i64 %bytes, i64 %class)
  ret ptr %block
none:
  ret ptr null
}}

define void @dy2st.free(ptr %context, ptr %block) alwaysinline {{
entry:
GO
  ret void
}}

; let go of a block that goes over to somebody else, who frees it
define void @dy2st.leave(ptr %context, ptr %block) {{
entry:
  %class.place = getelementptr i8, ptr %block, i64 8
  %class = load i64, ptr %class.place
  call void @dy2st.uncount(ptr %context, i64 %class)
  call void @dy2st.unlink(ptr %context, ptr %block, i64 %class)
  ret void
}}

; take a block that is not counted from the blocks of the context
define void @dy2st.unlink(ptr %context, ptr %block, i64 %class) {{
entry:
  %content = call i64 @dy2st.content(i64 %class)
  %bytes.place = getelementptr i8, ptr %context, i64 {BYTES}
  %bytes = load i64, ptr %bytes.place
  %bytes.left = sub i64 %bytes, %content
  store i64 %bytes.left, ptr %bytes.place
  %link = getelementptr i8, ptr %block, i64 24
  %older = load ptr, ptr %link
  %back = getelementptr i8, ptr %block, i64 32
  %newer = load ptr, ptr %back
  %blocks = getelementptr i8, ptr %context, i64 {BLOCKS}
  %link.newer = getelementptr i8, ptr %newer, i64 24
  %newest = icmp eq ptr %newer, null
  %place = select i1 %newest, ptr %blocks, ptr %link.newer
  store ptr %older, ptr %place
  %oldest = icmp eq ptr %older, null
  br i1 %oldest, label %done, label %more
more:
  %back.older = getelementptr i8, ptr %older, i64 32
  store ptr %newer, ptr %back.older
  br label %done
done:
  ret void
}}

define void @dy2st.release(ptr %context, ptr %block) {{
entry:
  %foreign = icmp eq ptr %block, null
  br i1 %foreign, label %done, label %count
count:
  %holders = load i64, ptr %block
  %left = sub i64 %holders, 1
  store i64 %left, ptr %block
  %last = icmp eq i64 %left, 0
  br i1 %last, label %give, label %done
give:
  call void @dy2st.free(ptr %context, ptr %block)
  br label %done
done:
  ret void
}}

define void @dy2st.retain(ptr %block) {{
entry:
  %foreign = icmp eq ptr %block, null
  br i1 %foreign, label %done, label %count
count:
  %holders = load i64, ptr %block
  %more = add i64 %holders, 1
  store i64 %more, ptr %block
  br label %done
done:
  ret void
}}

; whether the block is held once, so that who holds it may write into it
define i1 @dy2st.unique(ptr %block) {{
entry:
  %foreign = icmp eq ptr %block, null
  br i1 %foreign, label %no, label %count
count:
  %holders = load i64, ptr %block
  %one = icmp eq i64 %holders, 1
  ret i1 %one
no:
  ret i1 false
}}"""


def size_class(size: int) -> int:
    """Return what `dy2st.class` gives for a number of bytes."""
    least = max(size, 64)
    shift = least.bit_length() - 3
    return 4 * (shift + 2) + ((least + (1 << shift) - 1) >> shift) - 4


def _parts(text: str) -> dict[str, str]:
    """Return the text of each function by its name; comments stand in front of the functions they are about."""
    parts: dict[str, str] = {}
    for piece in text.split("\n\n"):
        lines = [line for line in piece.splitlines() if not line.startswith(";")]
        parts[lines[0].partition("@")[2].partition("(")[0]] = "\n".join(lines)
    return parts


FUNCTIONS = _parts(_TEXT.replace("GO", _TO_THE_LIST))
"""The functions on blocks, by name."""
GUARDED = _parts(_TEXT.replace("GO", _TO_THE_SYSTEM))
"""The same where every block has exactly its bytes, and goes back to the system at once (guard_pages.py)."""
