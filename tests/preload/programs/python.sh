# needs: python3
python3 - <<'PYTHON'
import os, subprocess, sys
from multiprocessing import Pool

def f(i):
    return open("in/words").read(i)

print(subprocess.check_output(["echo", "x"]))
print(sum(map(int, open("in/numbers"))))
with Pool(2) as pool:
    print(pool.map(f, range(5)))
sys.exit(4)
PYTHON
