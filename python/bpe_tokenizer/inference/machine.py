"""Facts about this machine: hardware and installed libraries, found without loading any."""

from __future__ import annotations

import contextlib
import importlib.util
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Machine"]

_LIBRARIES = ("mlx_lm", "llama_cpp", "openvino_genai", "transformers", "torch")
# PCI vendors: https://pcisig.com/membership/member-companies
_INTEL = "0x8086"
_BUILD = re.compile(r"(?:lib)?ggml-(\w+)\.(?:so|dll|dylib)")


@dataclass(frozen=True)
class Machine:
    """What decides which backend is the best; made by hand, it lets another machine be thought of.

    Args:
        system: The operating system, as `platform.system()` calls it.
        architecture: The processor's, as `platform.machine()` calls it.
        has_nvidia_gpu: Whether an NVIDIA GPU with its driver is there.
        has_amd_gpu: Whether an AMD GPU with ROCm's driver is there.
        has_intel_hardware: Whether the processor is Intel's, or a GPU of Intel's is there.
        libraries: The modules of inference libraries that are installed.
        llama_cpp_builds: What the installed llama.cpp was built for beside the processor: `"cuda"`, `"hip"`,
            `"metal"`, `"vulkan"`, ...
    """

    system: str = "Linux"
    architecture: str = "x86_64"
    has_nvidia_gpu: bool = False
    has_amd_gpu: bool = False
    has_intel_hardware: bool = False
    libraries: frozenset[str] = frozenset()
    llama_cpp_builds: frozenset[str] = frozenset()

    @classmethod
    def here(cls) -> Machine:
        """Return the facts about this machine; a few milliseconds, nothing is imported or started."""
        return cls(
            system=platform.system(),
            architecture=platform.machine(),
            has_nvidia_gpu=_has_nvidia_gpu(),
            has_amd_gpu=_has_amd_gpu(),
            has_intel_hardware=_has_intel_hardware(),
            libraries=frozenset(name for name in _LIBRARIES if _is_installed(name)),
            llama_cpp_builds=_llama_cpp_builds(),
        )

    @property
    def is_apple_silicon(self) -> bool:
        """Whether it is a Mac with a chip of Apple's."""
        return self.system == "Darwin" and self.architecture == "arm64"


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):  # a broken installation, or a module without a spec
        return False


def _has_nvidia_gpu() -> bool:
    # The driver brings the tool along; a Jetson has neither the first device nor the tool.
    devices = ("/dev/nvidia0", "/dev/nvhost-gpu")
    return any(Path(device).exists() for device in devices) or shutil.which("nvidia-smi") is not None


def _has_amd_gpu() -> bool:
    return Path("/dev/kfd").exists() or shutil.which("rocm-smi") is not None


def _has_intel_hardware() -> bool:
    if "Intel" in platform.processor():  # Windows
        return True
    with contextlib.suppress(OSError):
        if "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"):
            return True
    for vendor in Path("/sys/class/drm").glob("card*/device/vendor"):
        with contextlib.suppress(OSError):
            if vendor.read_text(encoding="utf-8").strip() == _INTEL:
                return True
    return False


def _llama_cpp_builds() -> frozenset[str]:
    if not _is_installed("llama_cpp"):
        return frozenset()
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        return frozenset()
    names = (path.name for path in (Path(spec.origin).parent / "lib").glob("*ggml-*"))
    found = frozenset(match[1] for match in map(_BUILD.match, names) if match)
    return found - {"base", "cpu", "blas"}
