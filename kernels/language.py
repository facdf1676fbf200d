"""The only import of Triton, and the few functions that several kernels share.

Without Triton everything here still imports: `jit` leaves functions alone, `HAS_TRITON` is False,
and every operation runs its reference. What kernels do to numbers is kept to what the interpreter
(TRITON_INTERPRET=1) computes as a card does: float32 arithmetic, no libdevice, no autotuning.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

try:
    import triton
    import triton.language

    tl: Any = triton.language
except ImportError:
    triton = None
    tl = None

HAS_TRITON = triton is not None
TRITON_VERSION: str = triton.__version__ if HAS_TRITON else ""

INTERPRETED = HAS_TRITON and os.environ.get("TRITON_INTERPRET") == "1"
"""Kernels run in Triton's interpreter: set before the first import, for a whole process."""

# What the arguments of kernels are called. Triton looks the names up, and takes no others.
if TYPE_CHECKING:
    constexpr = Any
    tensor = Any
else:
    constexpr = tl.constexpr if HAS_TRITON else Any
    tensor = tl.tensor if HAS_TRITON else Any


class Kernel(Protocol):
    """A compiled or interpreted kernel: `kernel[grid](*arguments, num_warps=4)`."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]: ...

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """As a function of another kernel."""
        ...


def _kernel_errors() -> tuple[type[Exception], ...]:
    """Triton's own, the driver's, and those of a compiler that is missing or fails."""
    common = (RuntimeError, OSError, ValueError, subprocess.SubprocessError)
    if not HAS_TRITON:
        return common
    from triton.errors import TritonError

    return (*common, TritonError)


KERNEL_ERRORS = _kernel_errors()
"""What building or running a kernel may raise on a card that it does not suit."""


def jit(function: Callable[..., Any]) -> Kernel:
    return cast(Kernel, triton.jit(function) if HAS_TRITON else function)


def jit_for_counts(*counts: str) -> Callable[[Callable[..., Any]], Kernel]:
    """For a kernel with arguments that change from step to step: one build serves all of them,
    where a 1 or a multiple of 16 would else be built for anew."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        if not HAS_TRITON:
            return cast(Kernel, function)
        names = list(counts)
        decorator = triton.jit(do_not_specialize=names, do_not_specialize_on_alignment=names)
        return cast(Kernel, decorator(function))

    return decorate


def power_of_two(number: int) -> int:
    """The least one that is not below `number`: blocks have such sizes."""
    return 1 << max(0, number - 1).bit_length()


@jit
def soft_capped(x: tensor, cap: tensor) -> Any:
    """cap * tanh(x / cap), from an exponent that cannot overflow."""
    falling = tl.exp(-2.0 * tl.abs(x / cap))
    size = cap * (1.0 - falling) / (1.0 + falling)
    return tl.where(x < 0, -size, size)


def source_key(spec: Any) -> str:
    """A hash of a kernel's source, of all that it calls, and of this Triton."""
    return f"{spec.kernel.cache_key} {TRITON_VERSION}"


def compile_for(spec: Any, capability: int) -> Any:
    """The machine code of a `kernels.launch.Spec` for a compute capability, with no card at hand.

    What the assembler says about registers goes to standard output.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # A build that Triton still has would be silent.
    triton.knobs.compilation.always_compile = True
    triton.knobs.nvidia.dump_ptxas_log = True
    names = spec.kernel.arg_names
    constants = dict(spec.constants)
    types = dict(spec.types)
    source = ASTSource(
        fn=spec.kernel,
        signature={name: types.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in spec.aligned},
    )
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def disassembled(cubin: bytes) -> str:
    """Machine code as text, by the disassembler that comes with Triton."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [triton.knobs.nvidia.nvdisasm.path, "-c", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
