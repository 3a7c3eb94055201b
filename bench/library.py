"""Everything of the library beside its peers, one benchmark after the other: order, indexing, layers, linalg, fft, data;
then whether steps wait for their data (loader).

    scripts/bench library [options of each]

Prints what they print, then once more the lines whose ratio is below 1.
"""
import os
import re
import subprocess
import sys

NAMES = ("order", "indexing", "layers", "linalg", "fft", "data")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    slow, lines, status = [], 0, 0
    commands = [[sys.executable, f"{here}/{name}.py", *sys.argv[1:]] for name in NAMES]
    commands.append([f"{here}/../scripts/bench", "loader"])
    for command in commands:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            for line in program.stdout:
                print(line, end="", flush=True)
                ratio = re.search(r", ratio ([0-9.]+)", line)
                lines += ratio is not None
                if ratio and float(ratio[1]) < 1 or "MISSING" in line:
                    slow.append(line)
        status = status or program.returncode
    print(f"library: {lines} lines, {len(slow)} below 1 or missing")
    print("".join(slow), end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
