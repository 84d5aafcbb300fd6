"""
The boot loader: update-grub and grub-mkconfig on Debian, grubby with Boot Loader Specification entries on RHEL.

Sources: GRUB's util/grub.d/10_linux.in (arguments of an entry: root, ro, GRUB_CMDLINE_LINUX, then
GRUB_CMDLINE_LINUX_DEFAULT) and 00_header.in (``next_entry`` of grubenv wins once, then ``saved_entry`` where
GRUB_DEFAULT=saved, else GRUB_DEFAULT); grubby(8); grub-reboot(8).
"""

from __future__ import annotations

import subprocess

from hwcheck.lab.actor.place import Node, ToolError, say
from hwcheck.lab.actor.settings import shell_words

CFG, SETTINGS, MORE = "/boot/grub/grub.cfg", "/etc/default/grub", "/etc/default/grub.d/*.cfg"
ENVIRONMENT, ENTRIES = "/boot/grub/grubenv", "/boot/loader/entries/*.conf"
_HEAD, _SIZE = "# GRUB Environment Block\n", 1024
_NAMES = ("GRUB_DEFAULT", "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT", "GRUB_DISTRIBUTOR")


# ------------------------------------------------------------------------------------------------------------- boots


def arguments(node: Node) -> str:
    """
    Return what the loader starts the kernel with at this boot, as /proc/cmdline has it; "" for no entry.

    A ``next_entry`` is used up by that.
    """
    found = grub_entries(node) or bls_entries(node)
    if not found:
        return ""
    environment = read_environment(node)
    wanted = environment.pop("next_entry", "") or _default(node, environment)
    if node.exists(ENVIRONMENT):
        write_environment(node, environment)
    chosen = next(
        (one for number, one in enumerate(found) if wanted in (str(number), one["title"], one["id"])), found[0]
    )
    return f"BOOT_IMAGE={chosen['image']} {chosen['arguments']}".strip()


def _default(node: Node, environment: dict[str, str]) -> str:
    for row in node.text(CFG).splitlines():
        if row.strip().startswith("set default="):
            value = row.partition("=")[2].strip().strip('"')
            return environment.get("saved_entry", "0") if "saved_entry" in value else value
    return environment.get("saved_entry", "0")


def grub_entries(node: Node) -> list[dict[str, str]]:
    """Return the entries of grub.cfg: title, id, image, arguments."""
    found: list[dict[str, str]] = []
    for row in node.text(CFG).splitlines():
        words = shell_words(row)
        if words[:1] == ["menuentry"]:
            name = next(
                (words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--id", "$menuentry_id_option")), ""
            )
            found.append({"title": words[1], "id": name, "image": "", "arguments": ""})
        elif words and words[0] in ("linux", "linuxefi") and found and not found[-1]["image"]:
            found[-1] |= {"image": words[1], "arguments": row.split(None, 2)[2].strip()}
    return [one for one in found if one["image"]]


def bls_entries(node: Node) -> list[dict[str, str]]:
    """Return the entries of the Boot Loader Specification, newest first."""
    found = []
    for path in reversed(node.expand(ENTRIES)):
        rows = [row.split(None, 1) for row in node.text(path).splitlines()]
        keys = {row[0]: row[1] for row in rows if len(row) == 2}
        found.append({
            "title": keys.get("title", ""), "id": path.rpartition("/")[2].removesuffix(".conf"), "path": path,
            "image": keys.get("linux", ""), "arguments": keys.get("options", ""), "initrd": keys.get("initrd", ""),
        })  # fmt: skip
    return found


def read_environment(node: Node) -> dict[str, str]:
    """Return the variables of grubenv."""
    rows = [row for row in node.text(ENVIRONMENT).splitlines() if "=" in row and not row.startswith("#")]
    return dict(row.split("=", 1) for row in rows)


def write_environment(node: Node, values: dict[str, str]) -> None:
    """Write grubenv: always as long as it was, the rest is filled."""
    text = _HEAD + "".join(f"{key}={value}\n" for key, value in values.items() if value)
    with open(node.real(ENVIRONMENT), "w", encoding="ascii") as file:
        file.write(text + "#" * (_SIZE - len(text)))


# ------------------------------------------------------------------------------------------------------------- tools


def run(node: Node, tool: str, words: list[str]) -> int:
    """Be a tool of the loader."""
    with node.locked():
        if tool in ("grub-reboot", "grub-set-default", "grub2-reboot", "grub2-set-default"):
            if not words:
                raise ToolError(f"{tool}: More than 1 menu entry?")
            name = "next_entry" if tool.endswith("reboot") else "saved_entry"
            write_environment(node, {**read_environment(node), name: words[-1]})
            return 0
        if tool in ("grub-editenv", "grub2-editenv"):
            say("\n".join(f"{key}={value}" for key, value in read_environment(node).items()))
            return 0
        if tool == "grubby":
            return _grubby(node, words)
        return _mkconfig(node, tool, words)


def _mkconfig(node: Node, tool: str, words: list[str]) -> int:
    target = CFG if tool == "update-grub" else ""
    for at, word in enumerate(words):
        if word in ("-o", "--output"):
            target = words[at + 1]
        elif word.startswith("--output="):
            target = word.partition("=")[2]
    settings = _settings(node)
    kernels = sorted((path for path in node.expand("/boot/vmlinuz-*")), reverse=True)
    if not kernels:
        raise ToolError("grub-mkconfig: no kernel in /boot")
    text = _config(node, settings, kernels)
    if not target:
        say(text)
        return 0
    say("Generating grub configuration file ...")
    node.put(target, text)
    say("\n".join(f"Found linux image: {kernel}" for kernel in kernels) + "\ndone")
    return 0


def _settings(node: Node) -> dict[str, str]:
    """
    Read the settings as grub-mkconfig does: a shell reads the files one after the other.

    Raises:
        ToolError: one of them is no shell text.
    """
    files = [path for path in (SETTINGS, *node.expand(MORE)) if node.exists(path)]
    script = "set -e\n" + "".join(f". '{node.real(path)}'\n" for path in files)
    script += "".join(f'printf "%s\\n" "${name}"\n' for name in _NAMES)
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=20)  # noqa: S603 - the node's files
    if done.returncode:
        raise ToolError(done.stderr.strip() or "grub-mkconfig: settings could not be read", done.returncode)
    return dict(zip(_NAMES, done.stdout.split("\n"), strict=False))


def _config(node: Node, settings: dict[str, str], kernels: list[str]) -> str:
    device = next((word for word in node.text("/proc/cmdline").split() if word.startswith("root=")), "root=/dev/sda1")
    given = f"{device} ro {settings['GRUB_CMDLINE_LINUX']} {settings['GRUB_CMDLINE_LINUX_DEFAULT']}"
    default = settings["GRUB_DEFAULT"] or "0"
    first = "${saved_entry}" if default == "saved" else default
    rows = [f'set default="{first}"']
    for number, kernel in enumerate(kernels):
        release = kernel.partition("vmlinuz-")[2]
        title = "Ubuntu" if not number else f"Ubuntu, with Linux {release}"
        rows += [
            f"menuentry '{title}' --class ubuntu {{", f"\tlinux\t{kernel} {' '.join(given.split())}",
            f"\tinitrd\t/boot/initrd.img-{release}", "}",
        ]  # fmt: skip
    for path in node.expand("/etc/grub.d/4*"):
        rows += node.text(path).splitlines()[2:]  # exec tail -n +3 $0
    return "\n".join(rows) + "\n"


def _grubby(node: Node, words: list[str]) -> int:
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        options[name] = value if sign else next(rest, "") if name in _WITH_VALUE else ""
    found = bls_entries(node)
    if "--default-kernel" in options:
        say(found[0]["image"])
    elif "--info" in options:
        for number, one in enumerate(found):
            if options["--info"] in ("ALL", "DEFAULT", one["image"], str(number)):
                say(_told(number, one))
    elif "--update-kernel" in options:
        chosen = [one for number, one in enumerate(found)
                  if options["--update-kernel"] in ("ALL", one["image"], str(number))
                  or (options["--update-kernel"] == "DEFAULT" and not number)]  # fmt: skip
        if not chosen:
            raise ToolError(f"The param {options['--update-kernel']} is incorrect")
        for one in chosen:
            _update(node, one, options.get("--args", ""), options.get("--remove-args", ""))
    elif "--set-default" in options:
        write_environment(node, {**read_environment(node), "saved_entry": options["--set-default"]})
    else:
        raise ToolError("grubby: the lab knows --info, --update-kernel, --default-kernel and --set-default")
    return 0


_WITH_VALUE = ("--info", "--update-kernel", "--args", "--remove-args", "--set-default")


def _told(number: int, one: dict[str, str]) -> str:
    words = one["arguments"].split()
    device = next((word[5:] for word in words if word.startswith("root=")), "")
    args = " ".join(word for word in words if not word.startswith("root="))
    return (
        f'index={number}\nkernel="{one["image"]}"\nargs="{args}"\nroot="{device}"\ninitrd="{one["initrd"]}"\n'
        f'title="{one["title"]}"\nid="{one["id"]}"'
    )


def _update(node: Node, one: dict[str, str], added: str, removed: str) -> None:
    """Change an entry: of a name that is added all words of before go, of one that is removed as well."""
    new, gone = added.split(), removed.split()
    names = {word.partition("=")[0] for word in new}
    names |= {name for name in gone if "=" not in name}
    kept = [word for word in one["arguments"].split() if word not in gone and word.partition("=")[0] not in names]
    rows = [f"options {' '.join([*kept, *new])}" if row.startswith("options") else row
            for row in node.text(one["path"]).splitlines()]  # fmt: skip
    node.put(one["path"], "\n".join(rows) + "\n")
