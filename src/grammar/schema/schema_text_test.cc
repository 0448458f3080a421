// Strings: what a pattern says holds for the value, whose text is escaped.
#include "src/grammar/schema/schema_matches_test.h"

namespace latte::schema_text_test {
namespace {

using SchemaTextTest = SchemaMatches;

TEST_F(SchemaTextTest, QuotesAndBackslashesOfAPatternAreEscaped) {
  Check({{R"({"type": "string", "pattern": "^\"[a-c]+\"$"})",
          {R"("\"abc\"")"},
          {R"(""abc"")", R"("abc")"}},
         {R"({"type": "string", "pattern": "^C:\\\\[a-z]+$"})", {R"("C:\\dir")"}, {R"("C:\dir")"}},
         {R"({"type": "string", "pattern": "^[\"'\\\\]{2}$"})",
          {R"("\"'")", R"("\\\"")"},
          {R"("""")", R"("\")"}},
         {R"({"type": "string", "pattern": "^(\"|x)\\x22$"})",
          {R"("\"\"")", R"("x\"")"},
          {R"("x"")"}}});
}

TEST_F(SchemaTextTest, ControlCharactersOfAPatternAreEscaped) {
  Check({{R"({"type": "string", "pattern": "^a\\nb$"})", {R"("a\nb")"}, {"\"a\nb\"", R"("a\\nb")"}},
         {R"({"type": "string", "pattern": "^\\t[a]$"})", {R"("\ta")"}, {"\"\ta\""}},
         {R"({"type": "string", "pattern": "^[\\x00-\\x02]\\r\\f\\cH$"})",
          {R"("\u0001\r\f\b")"},
          {"\"\x01\r\f\b\""}},
         {R"({"type": "string", "pattern": "^a\nb$"})", {R"("a\nb")"}, {"\"a\nb\""}}});
}

TEST_F(SchemaTextTest, ClassesThatMatchThemAreEscapedToo) {
  Check({{R"({"type": "string", "pattern": "^\\s{1,4}$"})",
          {R"(" \n")", R"("\t")"},
          {"\"\n\"", "\"\t\"", R"("")"}},
         {R"({"type": "string", "pattern": "^.{3,6}$"})",
          {R"("\"\\a")", R"("\tab")", "\"äöü\""},
          {R"("""")", R"("a\nb")", R"("ab\")"}},
         {R"({"type": "string", "pattern": "^[^a]{2}$"})",
          {R"("\n\"")", R"("bc")"},
          {R"("ab")", "\"\n\n\""}},
         {R"({"type": "string", "pattern": "^\\W{2}$"})",
          {R"("\\\"")", R"("- ")"},
          {R"("ab")", "\"éé\""}},
         {R"({"type": "string", "pattern": "^[\\S\\s]{3}$"})", {R"("\n\"x")"}, {"\"\nab\""}},
         {R"({"type": "string", "pattern": "^[^\\w\\s]\\D$"})",
          {R"("\"\\")"},
          {R"("a\"")", R"("-1")"}}});
}

TEST_F(SchemaTextTest, PatternsAsTheyAreWritten) {
  Check({{R"({"pattern": "^(?:a|b+)?c{2,3}$"})",
          {R"("acc")", R"("bbccc")", R"("cc")"},
          {R"("ac")", R"("abcc")", "3"}},
         {R"({"pattern": "[a-z]{2}"})", {R"("ab")"}, {R"("a")"}},
         {R"({"pattern": "^A"})", {R"("A")", R"("Abc \" d")"}, {R"("bA")"}},
         {R"({"pattern": "A$"})", {R"("A")", R"("bcA")"}, {R"("Ab")"}},
         {R"({"pattern": "^a$|^b$"})", {R"("a")", R"("b")"}, {R"("ab")"}},
         {R"({"pattern": "^(a|b)$|^c"})", {R"("a")", R"("cd")"}, {R"("ad")"}},
         {R"({"pattern": ""})", {R"("")", R"("x")"}, {"3"}},
         {R"({"pattern": "^(?<year>\\d{4})-[\\dA-F]{1,}$"})", {R"("2026-1F")"}, {R"("202-1")"}},
         {R"({"pattern": "^[\\u0041-\\u0043\\u{1F600}]+$"})", {"\"AC😀\""}, {R"("D")"}},
         {R"({"pattern": "^[a\\-z.]{1,2}\\.\\/$"})", {R"("-./")"}, {R"("b./")"}},
         {R"({"pattern": "^x{0}y{1}z{,2}$"})", {R"("yz{,2}")"}, {R"("yzz")"}},
         {R"({"pattern": "^(a*)*b$"})", {R"("aab")", R"("b")"}, {R"("a")"}}});
}

TEST_F(SchemaTextTest, EscapesCountAsOneCharacter) {
  Check({{R"({"type": "string", "maxLength": 3})",
          {R"("")", R"("\n\"\\")", R"("\u00e4bc")", "\"äöü\"", R"("\ud83d\ude00ab")", R"("\/")"},
          {R"("\n\n\n\n")", R"("\ud83d")", R"("abcd")", "\"\n\"", R"("\x")"}},
         {R"({"type": "string", "minLength": 2})",
          {R"("\t\u0000")", "\"😀😀\""},
          {R"("\t")", "\"😀\"", R"("\u0041")", R"("\ud83d\ude00")"}},
         {R"({"type": "string", "minLength": 1, "maxLength": 2})",
          {R"("\"")", R"("\"\"")"},
          {R"("")", R"("\"\"\"")"}}});
}

TEST_F(SchemaTextTest, LongStrings) {
  const auto text = [](size_t length) { return "\"" + std::string(length, 'a') + "\""; };
  Check({{R"({"type": "string", "maxLength": 300})",
          {text(0), text(128), text(129), text(300)},
          {text(301), text(400)}},
         {R"({"type": "string", "minLength": 200})",
          {text(200), text(500)},
          {text(199), text(128), text(0)}},
         {R"({"type": "string", "minLength": 130, "maxLength": 270})",
          {text(130), text(256), text(270)},
          {text(129), text(271)}},
         {R"({"type": "string", "minLength": 128, "maxLength": 128})",
          {text(128)},
          {text(127), text(129)}},
         {R"({"type": "string", "maxLength": 5000})", {text(0), text(5000)}, {text(5001)}},
         {R"({"type": "string", "pattern": "^[a-z]{1,500}$"})",
          {text(1), text(500)},
          {text(0), text(501)}},
         {R"({"type": "string", "pattern": "^[A-Z]{2}-.{0,100}$"})",
          {"\"AB-\"", "\"AB-" + std::string(100, 'x') + "\""},
          {"\"AB\"", "\"AB-" + std::string(101, 'x') + "\""}}});
}

// So that no value is longer than maxLength, whatever an escape counts.
TEST_F(SchemaTextTest, EscapesInLongStringsCountAsTheyAreWritten) {
  const auto text = [](size_t plain, const std::string& escape, size_t escapes) {
    std::string out = "\"" + std::string(plain, 'a');
    for (size_t i = 0; i < escapes; ++i) out += escape;
    return out + "\"";
  };
  Check({{R"({"type": "string", "maxLength": 40})",
          {text(38, "\\n", 1), text(0, "\\n", 20), text(34, "\\u00e4", 1), "\"äöü\""},
          {text(40, "\\n", 1), text(0, "\\n", 41), text(40, "\\u00e4", 1), text(41, "", 0)}},
         {R"({"type": "string", "minLength": 40})",
          {text(39, "\\n", 1), text(0, "\\u00e4", 40)},
          {text(37, "\\n", 2), text(0, "\\n", 39)}}});
}

TEST_F(SchemaTextTest, SeveralConstraintsHoldTogether) {
  const std::string uuid =
      R"(^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$)";
  Check({{R"({"type": "string", "format": "uuid", "pattern": ")" + uuid + "\"}",
          {R"("123e4567-e89b-12d3-a456-426614174000")"},
          {R"("123e4567-e89b-92d3-a456-426614174000")"}},
         {R"({"type": "string", "format": "ipv4", "pattern": "^1[0-9.]+$"})",
          {R"("10.0.0.255")"},
          {R"("1.2.3")", R"("20.0.0.1")", R"("1..1.1")"}},
         {R"({"type": "string", "format": "date", "pattern": "-31$"})",
          {R"("2026-12-31")"},
          {R"("2026-11-31")", R"("2026-12-30")"}},
         {R"({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3})",
          {R"("ab")", R"("abc")"},
          {R"("a")", R"("abcd")", R"("AB")"}},
         {R"({"type": "string", "pattern": "^[^x]+$", "maxLength": 2})",
          {R"("\"\n")"},
          {R"("ax")", R"("abc")"}},
         {R"({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}]})",
          {R"("ab")", R"("axb")"},
          {R"("a")", R"("b")", R"("abc")"}}});
}

TEST_F(SchemaTextTest, Formats) {
  Check(
      {{R"({"format": "date"})",
        {R"("2024-02-29")", R"("1999-12-31")"},
        {R"("2023-02-29")", R"("1900-02-29")", R"("2023-04-31")", R"("23-1-1")"}},
       {R"({"format": "time"})",
        {R"("23:59:59Z")", R"("00:00:00.5+01:30")"},
        {R"("24:00:00Z")", R"("23:59")"}},
       {R"({"format": "date-time"})", {R"("2024-02-29T12:00:00Z")"}, {R"("2024-02-29")"}},
       {R"({"format": "duration"})",
        {R"("P3Y6M4DT12H30M5S")", R"("P2W")", R"("PT5M")"},
        {R"("P")", R"("PT")", R"("P1Y2D")"}},
       {R"({"format": "email"})", {R"("a.b+c@example.org")"}, {R"("a@")", R"("a b@c.d")"}},
       {R"({"format": "hostname"})", {R"("a-1.example")"}, {R"("-a")", R"("a..b")"}},
       {R"({"format": "ipv4"})", {R"("255.0.10.1")"}, {R"("256.0.0.1")", R"("01.2.3.4")"}},
       {R"({"format": "ipv6"})",
        {R"("::1")", R"("2001:db8::8a2e:370:7334")", R"("1:2:3:4:5:6:7:8")", R"("::")"},
        {R"("1:2")", R"("1::2::3")"}},
       {R"({"format": "uuid"})", {R"("123E4567-e89b-12d3-a456-426614174000")"}, {R"("123e4567")"}},
       {R"({"format": "uri"})",
        {R"("https://example.org:80/a?b=c#d")", R"("urn:a:b")"},
        {R"("a b:c")", R"("/a")"}},
       {R"({"format": "uri-reference"})", {R"("../a?b")", R"("")"}, {R"(" ")"}},
       {R"({"format": "json-pointer"})", {R"("/a~1b/0")", R"("")"}, {R"("a")", R"("/~2")"}},
       {R"({"type": "integer", "format": "uint8"})", {"0", "255"}, {"256", "-1"}},
       {R"({"type": "number", "format": "double"})", {"0.5"}, {R"("x")"}}});
}

}  // namespace
}  // namespace latte::schema_text_test
