"""The hardware and the installed inference libraries of this machine, found without importing any."""

from __future__ import annotations

import contextlib
import importlib.util
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from bpe_tokenizer.inference.backend import InferenceBackend

__all__ = ["Machine"]

# The PCI vendor: https://pcisig.com/membership/member-companies
_INTEL = "0x8086"
_BUILD = re.compile(r"(?:lib)?ggml-(\w+)\.(?:so|dll|dylib)")


@dataclass(frozen=True)
class Machine:
    """The facts that decide which backend is the best. Construct one to describe another machine.

    Args:
        system: The operating system, as `platform.system()` names it.
        architecture: The processor's architecture, as `platform.machine()` names it.
        has_nvidia_gpu: Whether the machine has an NVIDIA GPU with its driver.
        has_amd_gpu: Whether the machine has an AMD GPU with ROCm's driver.
        has_intel_hardware: Whether the machine has an Intel processor or GPU.
        libraries: The installed modules of inference libraries.
        llama_cpp_builds: The GPU backends of the installed llama.cpp: `"cuda"`, `"hip"`, `"metal"`,
            `"vulkan"`, ...
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
        """Return the facts about this machine. Takes a few milliseconds, and imports and starts nothing."""
        libraries = {library for backend in InferenceBackend for library in backend.libraries}
        return cls(
            system=platform.system(),
            architecture=platform.machine(),
            has_nvidia_gpu=_has_nvidia_gpu(),
            has_amd_gpu=_has_amd_gpu(),
            has_intel_hardware=_has_intel_hardware(),
            libraries=frozenset(filter(_is_installed, libraries)),
            llama_cpp_builds=_llama_cpp_builds(),
        )

    @property
    def is_apple_silicon(self) -> bool:
        """Whether it is a Mac with Apple silicon."""
        return self.system == "Darwin" and self.architecture == "arm64"


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):  # a broken installation, or a module without a spec
        return False


def _has_nvidia_gpu() -> bool:
    # The driver installs the tool. A Jetson has neither the first device nor the tool.
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
