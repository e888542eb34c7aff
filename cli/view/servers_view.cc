#include "cli/view/servers_view.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/category.h"
#include "base/text.h"
#include "cli/view/fit_columns.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kHottestShown = 3;

constexpr Column kServerColumns[] = {
    {"SERVER"}, {"LOAD", true}, {"QUEUE", true, 2}, {"MB/s", true, 3}, {"UPDATES", true, 1}};
// Of a job with sparse tables.
constexpr Column kTableColumns[] = {{"SERVER"},          {"LOAD", true},       {"QUEUE", true, 6},
                                    {"MB/s", true, 7},   {"UPDATES", true, 4}, {"ROWS", true, 3},
                                    {"MEMORY", true, 5}, {"EVICTED", true, 2}, {"HOTTEST", false, 1}};
constexpr Column kWorkerColumns[] = {{"GRADIENTS OF"},       {"APPLIED", true, 2}, {"DROPPED", true, 4},
                                     {"STALENESS", true, 6}, {"MAX", true, 3},     {"WAITED", true, 5}};

// "deep: field 2 = 17 (1,203)"; of a combination of values, whose id says nothing of them,
// "wide: id 0x... (hashed) (99)".
std::string row_text(const HotRow& row) {
  const auto category = category_of(row.id);
  const std::string what = category ? str_cat("field ", category->field, " = ", category->value)
                                    : absl::StrCat("id 0x", absl::Hex(row.id, absl::kZeroPad16), " (hashed)");
  return str_cat(row.table, ": ", what, " (", with_commas(row.pulls), ")");
}

std::string hottest(const ServerTelemetry& server) {
  std::string text;
  for (std::size_t i = 0; i < std::min(server.hottest.size(), kHottestShown); ++i) {
    text += str_cat(text.empty() ? "" : ", ", row_text(server.hottest[i]));
  }
  return text.empty() ? "-" : text;
}

bool has_tables(const ServerTelemetry& s) {
  return s.rows > 0 || !s.hottest.empty();
}

Row row_of(const std::string& name, const ServerTelemetry& s, bool tables) {
  Row row = {name, fixed(s.load * 100, 0) + " %", with_commas(s.queue), fixed(s.bytes_per_second / 1e6, 1),
             with_commas(s.updates)};
  if (!tables) return row;
  row.push_back(s.rows > 0 ? with_commas(s.rows) : "-");
  row.push_back(s.row_bytes > 0 ? human_bytes(static_cast<std::uint64_t>(s.row_bytes)) : "-");
  row.push_back(s.rows_evicted > 0 ? with_commas(s.rows_evicted) : "-");
  row.push_back(hottest(s));
  return row;
}

Row row_of(const std::string& name, const StalenessTelemetry& s) {
  return {name,
          with_commas(s.applied),
          with_commas(s.dropped),
          fixed(s.mean, 2),
          with_commas(s.max),
          human_seconds(s.wait_seconds)};
}

// Appends a table after an empty line, or as much of it as there is room for.
void append(std::span<const Column> columns, std::vector<Row> rows, const Terminal& terminal, int width,
            int most, std::vector<std::string>& lines) {
  constexpr int kHead = 2;
  const int room = most - static_cast<int>(lines.size()) - kHead;
  if (rows.empty() || room <= 0) return;
  if (rows.size() > static_cast<std::size_t>(room)) rows.resize(static_cast<std::size_t>(room));
  std::vector<std::string> table = fit_table(columns, std::move(rows), width);
  table[0] = styled(terminal, Style::kDim, table[0]);
  lines.emplace_back();
  for (std::string& line : table) lines.push_back(std::move(line));
}

}  // namespace

std::vector<std::string> render_servers(const RunState& state, const Terminal& terminal, int width,
                                        int most) {
  std::vector<Row> servers, workers;
  const bool tables = std::ranges::any_of(state.members, [](const api::MemberStatus& m) {
    return m.telemetry.server && has_tables(*m.telemetry.server);
  });
  for (const api::MemberStatus& member : state.members) {
    const std::string name = member_name(member.role, member.index);
    if (member.telemetry.server) servers.push_back(row_of(name, *member.telemetry.server, tables));
    if (member.telemetry.staleness) workers.push_back(row_of(name, *member.telemetry.staleness));
  }
  std::vector<std::string> lines;
  append(tables ? std::span<const Column>(kTableColumns) : std::span<const Column>(kServerColumns),
         std::move(servers), terminal, width, most, lines);
  append(kWorkerColumns, std::move(workers), terminal, width, most, lines);
  return lines;
}

}  // namespace paceline::cli
