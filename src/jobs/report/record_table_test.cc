#include "src/jobs/report/record_table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::record_table_test {
namespace {

size_t Columns(const std::string& line) {
  size_t out = 0;
  for (const char c : line) out += (static_cast<unsigned char>(c) >> 6) != 2 ? 1 : 0;
  return out;
}

TEST(RecordTable, NumbersAndTextsAreLines) {
  const JsonOut record = {
      {"bench", "pool"}, {"calls", 20000}, {"us", 1.23456789}, {"peak", nullptr}};
  EXPECT_EQ(RecordTable(record),
            "bench                  pool\n"
            "calls                  20000\n"
            "us                     1.235\n"
            "peak                   -\n");
}

TEST(RecordTable, AListOfObjectsIsATable) {
  const JsonOut rows = {{{"path", "absorbed"}, {"us", 11.5}, {"none", nullptr}},
                        {{"path", "latent"}, {"us", 12345.6}, {"none", nullptr}}};
  EXPECT_EQ(RecordTable({{"grid", rows}}),
            "grid\n"
            "  path         us\n"
            "  absorbed   11.5\n"
            "  latent    12346\n");
}

TEST(RecordTable, ARowMayLackAKey) {
  const JsonOut rows = {{{"m", 1}, {"us", 2}}, {{"m", 16}, {"fast", true}}};
  EXPECT_EQ(RecordTable({{"rows", rows}}),
            "rows\n"
            "   m  us  fast\n"
            "   1   2  -\n"
            "  16   -  true\n");
}

TEST(RecordTable, ObjectsOfEqualKeysAreRows) {
  const JsonOut ops = {{"mha", {{"ms", 1}, {"flops", 2}}}, {"gemm", {{"ms", 3}, {"flops", 4}}}};
  EXPECT_EQ(RecordTable({{"ops", ops}}),
            "ops\n"
            "        ms  flops\n"
            "  mha    1      2\n"
            "  gemm   3      4\n");
}

TEST(RecordTable, RowsWithoutAnyValueAreALine) {
  const JsonOut rows = {{{"path", nullptr}}, {{"path", nullptr}, {"us", nullptr}}};
  EXPECT_EQ(RecordTable({{"grid", rows}}), "grid                   path=-, path=- us=-\n");
}

TEST(RecordTable, ObjectsOfOtherKeysAreIndented) {
  const JsonOut record = {{"prefill", {{"ms", 1}, {"ranks", {1, 2}}}},
                          {"empty", JsonOut::object()}};
  EXPECT_EQ(RecordTable(record),
            "prefill\n"
            "  ms                   1\n"
            "  ranks                1, 2\n"
            "empty                  \n");
}

TEST(RecordTable, NoLineIsWiderThanAScreen) {
  JsonOut row;
  for (int i = 0; i < 40; ++i) row["a_long_column_" + std::to_string(i)] = i * 1e6;
  JsonOut pieces = JsonOut::array();
  for (int i = 0; i < 40; ++i) pieces.push_back({{"many", i}, {"path", "ü·ü·ü"}});
  row["pieces"] = pieces;
  const JsonOut record = {
      {"words", std::string(400, 'x') + " " + std::string(50, 'y')},
      {"sentence", "made for " + std::string(80, 'a') + " " + std::string(80, 'b')},
      {"numbers", JsonOut(std::vector<int>(200, 7))},
      {"rows", {row, row}}};
  const std::string table = RecordTable(record);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(Columns(line), 120) << line;
  EXPECT_NE(table.find("…"), std::string::npos);
  // All columns are there, and every block repeats the first one.
  for (const auto& [key, value] : row.items()) EXPECT_NE(table.find(key), std::string::npos) << key;
  EXPECT_NE(table.find(std::string(80, 'b')), std::string::npos);
}

TEST(RecordTable, NothingOfALongTextIsLost) {
  const std::string word(300, 'x');
  std::string table = RecordTable({{"text", word}});
  std::erase_if(table, [](char c) { return c != 'x'; });
  EXPECT_EQ(table.size(), word.size() + 1);  // and the key's
}

}  // namespace
}  // namespace latte::record_table_test
