"""Names of tests are the same in every run, and say what is tested. Usage: names_test.py CTEST BUILD_DIR"""
import re
import subprocess
import sys
import unittest

CTEST = BUILD = None


class Names(unittest.TestCase):
    def test_a_name_holds_no_value_address_or_index(self):
        listing = subprocess.run([CTEST, "-N", "--test-dir", BUILD], text=True, capture_output=True, check=True).stdout
        names = re.findall(r"^ *Test +#\d+: (.*)$", listing, re.M)
        self.assertGreater(len(names), 100)
        # A suite whose instances have no names numbers them from 0.
        self.assertEqual([name for name in names if not re.fullmatch(r"[\w./]+", name) or name.endswith("/0")], [])


if __name__ == "__main__":
    CTEST, BUILD = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
