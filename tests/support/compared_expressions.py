"""The expressions whose values in Weir are compared with those in Spark.

Spark's ANSI mode stops a query at a division by zero, an overflow or a text that is no number or
time; Weir gives null or wraps around. So expressions that may come to that are compared with
Spark's other mode, and all others with ANSI mode, which is Spark's default and decides the types. A
cast is compared with ``try_cast``.
"""

from itertools import product

from edge_case_rows import SCHEMA

_NUMBERS = (*"hijlmdepqrwz",)
_PAIRS = [(x, y) for x, y in product(_NUMBERS, repeat=2) if x != y]
_TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz"),
    *("decimal(10,2)", "decimal(38,18)", "decimal(5,0)", "decimal(3,2)"),
)
_ALIKE = (
    *(("s", "u"), ("b", "c"), ("x", "y"), ("da", "db"), ("ts", "tt"), ("ts", "n"), ("da", "ts")),
    *(("da", "n"), ("f", "d"), ("null", "s"), ("null", "i"), ("f", "i"), ("l", "f"), ("p", "f")),
)
_TIMES_AND_TEXT = (("ts", "a"), ("n", "a"), ("da", "a"), ("a", "ts"))
_OVERFLOWING_CALLS = (
    *("-{}", "abs({})", "{} * 2", "{} / 3", "{} + 1.5", "{} % 3", "1 - {}", "floor({})"),
    *("ceil({})", "{} * 1.25", "{} / 0.3", "pmod({}, 3)", "{} % 0.7D", "round({} / 3, 4)"),
)
_CALLS = (
    *("round({})", "round({}, 1)", "round({}, 2)", "round({}, 5)", "round({}, 20)", "{} IS NULL"),
    *("isnan({})", "{} > 1", "{} = 0", "{} <> 1.5", "{} IN (1, 7, NULL)", "{} NOT IN (1, 2)"),
    *("{} BETWEEN 0 AND 5", "nullif({}, 1)", "concat({}, '')", "{} || 'x'", "if(b, {}, 0)"),
    *("coalesce({}, 0)", "least({}, 1)", "greatest({}, 2.5D)", "{} + 1.5D", "{} * 2.5D"),
    *("{} / 2.5D", "{} % 0.3D"),
)


def overflowing() -> list[str]:
    """Those that ANSI mode would stop at."""
    found = [f"{x} {sign} {y}" for sign in "+-*/%" for x, y in _PAIRS]
    found += [f"pmod({x}, {y})" for x, y in _PAIRS]
    found += [f"{x} div {y}" for x, y in product("thijlm", repeat=2)]
    found += [call.format(x) for call, x in product(_OVERFLOWING_CALLS, ("t", *_NUMBERS))]
    found += [f"{x} {sign} {y}" for sign in ("<", ">=", "=") for x, y in _TIMES_AND_TEXT]
    return list(dict.fromkeys((*OVERFLOWING.strip().splitlines(), *found)))


def others() -> list[str]:
    """Those that ANSI mode computes for every row."""
    found = [f"{x} {sign} {y}" for sign in ("<", ">=", "=", "<=>") for x, y in _PAIRS]
    found += [f"{x} {sign} {y}" for sign in ("<", ">=", "=", "!=") for x, y in _ALIKE]
    found += [f"{call}({x}, {y})" for call, (x, y) in product(("greatest", "coalesce"), _PAIRS)]
    found += [call.format(x) for call, x in product(_CALLS, ("t", "f", "k", "null", *_NUMBERS))]
    found += [f"cast({x} AS {kind})" for x, kind in product(SCHEMA.names, _TYPES)]
    return list(dict.fromkeys((*OTHERS.strip().splitlines(), *found)))


OVERFLOWING = r"""
(p + q) * q
-p * q
abs(p) + q
if(b, p, q) * q
coalesce(p, q) - r
cast(d AS decimal(10,2)) * q
greatest(p, q) * r
round(p, 1) * q
(p * q) / r
nullif(p, q) + 1
floor(p) + ceil(q)
CASE WHEN b THEN p * q ELSE r END - 1
cast(g AS decimal(5,2)) * 2 + i
i / 3 * 3 + d
(d + e) % (d - e)
cast(cast(g AS double) AS string)
ceiling(d)
ceil(d)
floor(d)
ts = a
- -i
-(-2147483648)
i div 0
i % 0
d % 0
d / 0
i / 0
p / 0
pmod(d, 0.3D)
pmod(i, j)
pmod(l, 0)
mod(d, e)
i + j
l + m
l * m
l - 1
-l
abs(l)
abs(t)
t + h
t * t
h * h
i * i
f / f
p + 1
p * p
p * q
p * r
p / q
p / r
q / p
r / p
w * w
w + w
w - z
w * 1.5
w / w
z + z
z * z
z / 3
z - 1
p / 3
1 / p
p * 3
p * l
l * p
p + l
l / p
(i + j) * 2
i + j * 2
-i + 1
round(p / 3, 2)
cast(p AS int) + 1
"""

OTHERS = r"""
null + null
null / null
null % null
null < null
s LIKE 'a%'
s NOT LIKE 'a%'
NOT s LIKE 'a%'
s LIKE 'a\\%c'
s LIKE 'a\\_c'
s LIKE 'a!%c' ESCAPE '!'
s NOT LIKE 'a!%c' ESCAPE '!'
s LIKE '%'
s LIKE ''
s LIKE '_'
s LIKE '__'
s LIKE 'a\\\\c'
s LIKE 'A.C'
s LIKE ANY ('a%', 'b%')
s LIKE ALL ('a%', '%c')
s NOT LIKE ANY ('a%', 'b%')
s ILIKE 'A%'
s NOT ILIKE 'A%'
s RLIKE '^a'
s NOT RLIKE '^a'
s LIKE u
s LIKE concat('a', '%')
'O''Brien'
s = 'O''Brien'
s = 'O\'Brien'
'a' 'b'
'a''b''c'
'a' "b"
"a""b"
'tab\there'
'line\nbreak'
'uni\u00e4'
'oct\101'
'back\\slash'
'per\%cent'
'per\_cent'
'\q'
'\0'
r'raw\n'
R"raw\t"
''
'''x'
concat('a''', 'b')
x'414243'
X'FF'
b'1'
1.5
.5
5.
1.50
0.0
00.10
1e3
1.5e-3
1E3
2147483647
2147483648
-2147483648
-2147483649
9223372036854775807
-9223372036854775808
10L
10S
10Y
1.5D
1.5F
1.5BD
10BD
1e3BD
100D
1e400
true
NULL
date '2020-01-01'
date '2020-1-1'
timestamp '2020-01-01 10:11:12'
timestamp '2020-01-01T10:11:12Z'
timestamp '2020-01-01 10:11:12+02:00'
timestamp_ntz '2020-01-01 10:11:12'
timestamp_ltz '2020-01-01 10:11:12'
ts + interval 1 day
ts > '2020-01-01T00:00:00Z'
ts > '2020-01-01T00:00:00+02:00'
ts >= '2020-01-01T10:11'
ts >= '2020-01-01 10:11'
ts > '2020'
ts > '2020-06'
ts > '2020-01-01 10'
ts > 'x'
ts IN ('2020-01-01', '1970-01-01T00:00:00Z')
ts BETWEEN '2020-01-01' AND '2021-01-01T00:00:00Z'
ts NOT BETWEEN '2020-01-01' AND '2021-01-01'
n > '2020-01-01T00:00:00Z'
da > '2020-01-01T00:00:00Z'
da = '2020-1-1'
da > '2019'
i BETWEEN j AND l
i NOT BETWEEN j AND l
i BETWEEN SYMMETRIC 5 AND 1
i NOT IN (1, 2)
i IN (1, NULL)
i NOT IN (1, NULL)
s IN ('abc', 'x%')
i IN (j, 7)
d IN (1, 2.5)
d IN (0, 1.5)
p IN (1.5, 2)
i IS NULL
i IS NOT NULL
b IS TRUE
b IS NOT TRUE
b IS FALSE
b IS NOT FALSE
b IS UNKNOWN
b IS NOT UNKNOWN
i IS DISTINCT FROM j
i IS NOT DISTINCT FROM j
i <=> NULL
i == 7
i <> 7
!b
NOT b
b AND c
b OR c
b = true
NULL AND b
NULL OR b
NOT NULL
i & j
i | 3
i ^ 5
~i
i << 2
i >> 1
+i
1e20 % 0.3D
d % 0.3D
pmod(1e20, 0.3D)
pmod(-7.5D, 2D)
mod(i, 3)
mod(p, 3)
9.99 * 9.99
q * q
round(q, 1)
round(q, 0)
ceil(q)
floor(q)
round(9.99, 1)
ceil(9.99)
floor(-9.99)
ceil(-0.5)
round(1.005, 2)
round(1.005D, 2)
round(0.285D, 2)
round(2.5D)
round(-2.5D)
round(3.5F, 0)
round(d, 3)
round(k, 2)
round(k, 1)
round(k, 0)
round(12345.678D, -2)
round(12345, -2)
round(p, -1)
round(l, 2)
abs(null)
abs(-0.0D)
-0.0D
d + 0.0D
-d
d * -1
sign(d)
floor(null)
ceil(null)
round(null)
round(null, 2)
- null
null + 1
null * 1.5
null / 2
null % 2
pmod(null, 2)
1 / null
null div 2
greatest(1, null)
least(null, null)
coalesce(null, null)
coalesce(null, 1, 2.5)
nullif(null, 1)
nullif(1, null)
nullif(i, j)
nullif(d, e)
nullif(s, 'abc')
nvl(i, 0)
nvl2(i, 1, 2)
ifnull(s, 'none')
if(b, 1, 2)
if(null, 1, 2)
if(b, i, d)
if(b, 'x', null)
iff(b, 1, 2)
CASE WHEN b THEN 1 WHEN c THEN 2.5 ELSE 3 END
CASE i WHEN 7 THEN 'seven' WHEN 3 THEN 'three' END
CASE WHEN i > 0 THEN s END
CASE WHEN i > 0 THEN p ELSE d END
CASE d WHEN 0 THEN 'zero' ELSE 'other' END
CASE null WHEN null THEN 1 ELSE 2 END
length(s)
length(x)
length('')
char_length(s)
character_length(s)
upper(s)
lower(s)
ucase(s)
lcase(s)
trim(s)
trim(BOTH 'a' FROM s)
trim('a' FROM s)
trim(s, 'a')
substring(s, 2)
substring(s, 2, 2)
substring(s, -2, 1)
substring(s, -4, 2)
substring(s, 0, 2)
substring(s, i, j)
substring(s, 1, -1)
substring(s, 2147483647, 2)
substring(s FROM 2 FOR 1)
substr(s, 2)
substr(s, l, 2)
substring(x, 2, 1)
concat(s, u)
concat(s, null)
concat(s, i)
concat(s, d)
concat(s, f)
concat(s, p)
concat(s, ts)
concat(s, da)
concat(s, b)
concat(x, y)
concat(x, s)
concat(x, null)
concat(x)
concat(s)
concat(i, j)
concat()
s || u
s || 1
x || y
s || null || u
null || s
startswith(s, 'a')
startswith(s, u)
startswith(s, '')
startswith(s, null)
endswith(s, 'c')
endswith(s, u)
contains(s, 'b')
contains(s, u)
contains(s, '')
contains(x, y)
startswith(x, y)
contains(s, '.')
isnull(i)
isnotnull(i)
isnan(d)
isnan(f)
isnan(null)
isnan(i)
f + d
f * f
f + 1
f + i
f + l
f = 0.1
f = 0.1F
f > d
f + p
d + p
p - 0.005
p % q
p % 3
pmod(p, q)
-p
abs(p)
abs(w)
-z
p > q
p = q
p < d
p = 1.5
p > 1
w > z
w = p
z = 1
greatest(p, q, i)
least(p, d)
coalesce(p, w)
coalesce(w, z)
coalesce(p, i)
if(b, p, w)
p IN (w)
cast('1.23' AS decimal(38,37))
cast('123' AS decimal(38,37))
cast(1.999 AS int)
cast(-1.999 AS bigint)
cast(99999999999.9 AS int)
cast(1e10 AS int)
cast(-0.9D AS int)
cast('nan'  AS double)
cast(1.0 AS string)
cast(1e7 AS string)
cast(1e-4 AS string)
cast(1.0F AS string)
cast(true AS decimal(1,0))
cast(true AS decimal(3,2))
cast('2020-01-01' AS timestamp)
cast('2020-01-01T10:11:12Z' AS timestamp)
cast('2020-01-01T10:11:12Z' AS timestamp_ntz)
cast('2020-01-01T10:11:12Z' AS date)
cast('2020-01-01 10:11' AS timestamp)
cast(x'ff' AS string)
cast(x'c3a4' AS string)
cast('ä' AS binary)
cast(s AS varchar(2))
cast(s AS char(5))
cast(s AS string)
cast(i AS void)
try_cast('x' AS int)
cast(null AS int)
cast(ts AS string)
cast(n AS string)
cast(da AS string)
cast(d AS string)
cast(f AS string)
cast(w AS string)
cast(cast(p AS decimal(20,10)) AS string)
cast(0.0000001 AS string)
cast(0.000000 AS string)
i::string
CAST(i AS STRING FORMAT 'x')
upper(s) LIKE 'A%'
length(concat(s, u)) > 3
round(d / 3, 2)
cast(d AS int) % 3
s COLLATE UTF8_LCASE
coalesce()
greatest(1)
round(d, 1, 2)
abs(i, j)
upper(s, u)
length(s, u)
"""
