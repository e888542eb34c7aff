#include "cli/view/dashboard.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace paceline::cli {

namespace {

Style phase_style(const std::string& phase) {
  if (phase == "Succeeded") return Style::kGreen;
  if (phase == "Failed") return Style::kRed;
  if (phase == "Running") return Style::kCyan;
  return Style::kYellow;
}

std::string ms(double value) {
  return value <= 0 ? "-" : fixed(value, value < 10 ? 2 : 1);
}

std::string title_line(const RunState& state, const Terminal& terminal) {
  std::string line = str_cat(styled(terminal, Style::kBold, state.name), "  ",
                             styled(terminal, phase_style(state.phase), state.phase));
  if (state.generation > 0) {
    line += str_cat("  view ", state.generation, ", ", state.members.size(),
                    state.members.size() == 1 ? " member" : " members");
  }
  return line + "  " + human_seconds(state.elapsed_seconds);
}

std::string bar_line(const RunState& state, const Terminal& terminal) {
  const double fraction =
      state.total_steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.total_steps) : 0;
  return str_cat(progress_bar(terminal, fraction, std::clamp(terminal.columns - 50, 10, 40)), "  ",
                 fixed(fraction * 100, 0), " %  step ", with_commas(state.step), "/",
                 with_commas(state.total_steps), "  epoch ", fixed(state.epoch, 1));
}

std::string rates(const RunState& state) {
  std::string line;
  if (state.loss) line += str_cat("loss ", loss_text(*state.loss), "  ");
  if (state.accuracy) line += str_cat("accuracy ", fixed(*state.accuracy * 100, 2), " %  ");
  if (state.test_loss && !state.accuracy) line += str_cat("test loss ", loss_text(*state.test_loss), "  ");
  if (!state.target.empty()) line += str_cat("(target ", state.target, ")  ");
  if (state.samples_per_second >= 1) {
    line += str_cat(with_commas(static_cast<std::int64_t>(state.samples_per_second)), " samples/s  ");
  }
  const bool goes_on = !is_finished(state) && state.step < state.total_steps;
  if (state.eta_seconds && goes_on) line += str_cat("ETA ", human_seconds(*state.eta_seconds));
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

namespace {

using Row = std::vector<std::string>;

// A column that a narrow terminal does without: the first of these that is there goes first.
constexpr std::string_view kDispensable[] = {"PID", "UPDATE", "PHASE", "TRANSFER", "INPUT"};

struct Column {
  std::string_view name;
  bool right;
};
constexpr Column kColumns[] = {{"MEMBER", false}, {"PID", true},     {"PHASE", false}, {"STEP", true},
                               {"INPUT", true},   {"COMPUTE", true}, {"WAIT", true},   {"TRANSFER", true},
                               {"UPDATE", true},  {"TOTAL ms", true}};

// At most `columns` wide, where leaving columns out can do it.
std::vector<std::string> narrow_table(std::vector<Row> rows, int columns) {
  std::vector<Column> shown(std::begin(kColumns), std::end(kColumns));
  const auto align = [&] {
    std::vector<bool> right;
    for (const Column& column : shown) right.push_back(column.right);
    return align_table(rows, right);
  };
  std::vector<std::string> table = align();
  for (const std::string_view name : kDispensable) {
    const auto too_wide = [&](const std::string& line) { return display_width(line) > columns; };
    if (std::none_of(table.begin(), table.end(), too_wide)) break;
    const auto at = std::find_if(shown.begin(), shown.end(), [&](const Column& c) { return c.name == name; });
    for (Row& row : rows) row.erase(row.begin() + (at - shown.begin()));
    shown.erase(at);
    table = align();
  }
  return table;
}

// The members' table, at most `columns` wide and of at most `most` members.
std::vector<std::string> members_table(const RunState& state, const Terminal& terminal, int columns,
                                       int most) {
  if (state.members.empty()) return {};
  std::vector<Row> rows(1);
  for (const Column& column : kColumns) rows[0].emplace_back(column.name);
  const auto limit = static_cast<std::size_t>(most);
  for (const MemberState& m : state.members) {
    if (rows.size() > limit) break;
    rows.push_back({m.name, m.pid > 0 ? str_cat(m.pid) : "-", m.phase, with_commas(m.step), ms(m.input_ms),
                    ms(m.compute_ms), ms(m.wait_ms), ms(m.transfer_ms), ms(m.update_ms), ms(m.step_ms)});
  }
  auto table = narrow_table(std::move(rows), columns);
  table[0] = styled(terminal, Style::kDim, table[0]);
  if (state.members.size() > limit) {
    const std::size_t left = state.members.size() - limit;
    table.push_back(str_cat("... and ", left, left == 1 ? " member more" : " members more"));
  }
  return table;
}

// What is above the members, the line that sums the rest, and the cursor's.
constexpr int kOtherLines = 7;
constexpr int kNoLimit = 1 << 20;

// A frame taller than the screen could not be drawn over: what has scrolled away stays.
int member_lines(const Terminal& terminal) {
  if (!terminal.interactive || terminal.rows <= 0) return kMaxMemberLines;
  return std::clamp(terminal.rows - kOtherLines, 1, kMaxMemberLines);
}

void fit_all(std::vector<std::string>& lines, const Terminal& terminal) {
  if (!terminal.interactive) return;
  for (std::string& line : lines) line = fit(terminal, line, terminal.columns - 1);
}

}  // namespace

std::vector<std::string> render_members(const RunState& state, const Terminal& terminal) {
  return members_table(state, terminal, kNoLimit, kMaxMemberLines);
}

std::vector<std::string> render_dashboard(const RunState& state, const Terminal& terminal) {
  std::vector<std::string> lines = {title_line(state, terminal)};
  if (state.total_steps > 0) lines.push_back(bar_line(state, terminal));
  lines.push_back(rates(state));
  if (!state.members.empty()) {
    lines.emplace_back();
    const int columns = terminal.interactive ? terminal.columns - 1 : kNoLimit;
    for (std::string& line : members_table(state, terminal, columns, member_lines(terminal)))
      lines.push_back(std::move(line));
  }
  fit_all(lines, terminal);
  return lines;
}

std::vector<std::string> render_summary(const RunState& state, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const char* label, std::string value) { rows.push_back({label, std::move(value)}); };
  if (state.target_seconds)
    row("target reached", str_cat(state.target, " after ", human_seconds(*state.target_seconds)));
  if (!state.target.empty() && !state.target_seconds && state.step > 0)
    row("target", str_cat(state.target, " was not reached"));
  if (state.accuracy) row("test accuracy", str_cat(fixed(*state.accuracy * 100, 2), " %"));
  if (state.test_loss) row("test loss", loss_text(*state.test_loss));
  if (state.loss) row("training loss", loss_text(*state.loss));
  if (state.total_steps > 0)
    row("steps", str_cat(with_commas(state.step), " of ", with_commas(state.total_steps), " (",
                         with_commas(state.samples), " samples, ", fixed(state.epoch, 2), " epochs)"));
  if (state.samples_per_second >= 1)
    row("speed", str_cat(with_commas(static_cast<std::int64_t>(state.samples_per_second)),
                         " samples/s, goodput ", fixed(state.goodput * 100, 1), " %"));
  if (state.first_step_seconds) row("first step after", human_seconds(*state.first_step_seconds));
  row("time", human_seconds(state.elapsed_seconds));
  if (state.bytes_exchanged > 0) row("bytes exchanged", human_bytes(state.bytes_exchanged));
  if (!state.model.empty()) row("model", state.model);
  if (!state.checkpoint.empty()) row("checkpoint", state.checkpoint);
  row("logs", state.folder + "/logs");

  std::vector<std::string> lines;
  lines.push_back(str_cat(
      styled(terminal, Style::kBold, state.name), "  ",
      styled(terminal, phase_style(state.phase), state.phase),
      state.phase == "Failed" && !state.reason.empty() ? str_cat(" (", state.reason, ")") : std::string()));
  for (std::string& line : align_table(rows, {})) lines.push_back("  " + line);
  return lines;  // not cut: paths are for copying
}

std::string render_progress_line(const RunState& state) {
  return str_cat("step ", state.step, "/", state.total_steps, "  epoch ", fixed(state.epoch, 2), "  ",
                 rates(state));
}

std::string Frame::draw(const std::vector<std::string>& lines) {
  std::string out;
  if (height_ > 0) out += str_cat("\x1b[", height_, "A");
  for (const std::string& line : lines) out += str_cat("\r\x1b[2K", line, "\n");
  for (std::size_t i = lines.size(); i < height_; ++i) out += "\r\x1b[2K\n";
  if (height_ > lines.size()) out += str_cat("\x1b[", height_ - lines.size(), "A");
  height_ = lines.size();
  return out;
}

std::string Frame::print_above(const std::vector<std::string>& lines) {
  std::string out;
  if (height_ > 0) out += str_cat("\x1b[", height_, "A\r\x1b[J");
  for (const std::string& line : lines) out += line + "\n";
  height_ = 0;
  return out;
}

}  // namespace paceline::cli
