#include "cli/view/dashboard.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/pluralize.h"
#include "base/text.h"
#include "cli/view/fit_columns.h"
#include "cli/view/gpus_view.h"
#include "cli/view/gradients_text.h"
#include "cli/view/servers_view.h"

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

// A long name is cut rather than the phase.
std::vector<std::string> title_line(const RunState& state, const Terminal& terminal, int width) {
  std::string view;
  if (state.generation > 0) {
    const auto members = std::ranges::count_if(
        state.members, [](const api::MemberStatus& m) { return m.role != Role::kEvaluator && m.rank >= 0; });
    view = str_cat("view ", state.generation);
    if (members > 0) view += str_cat(", ", pluralize(members, "member", "members"));
  }
  const std::string phase = sanitize_line(str_cat(state.phase, is_stale(state) ? ", stale" : ""));
  const int room = std::max(width - display_width(phase) - 2, 1);
  return fit_lines({{styled(terminal, Style::kBold, fit(terminal, sanitize_line(state.name), room))},
                    {styled(terminal, phase_style(state.phase), phase)},
                    {std::move(view), 1},
                    {human_seconds(state.elapsed_seconds), 2}},
                   width, 1);
}

std::vector<std::string> bar_line(const RunState& state, const Terminal& terminal, int width) {
  const double fraction = state.progress.total_steps > 0 ? static_cast<double>(state.progress.step) /
                                                               static_cast<double>(state.progress.total_steps)
                                                         : 0;
  return fit_lines(
      {{progress_bar(terminal, fraction, std::clamp(terminal.columns - 50, 10, 40)), 2},
       {fixed(fraction * 100, 0) + " %", 3},
       {str_cat("step ", with_commas(state.progress.step), "/", with_commas(state.progress.total_steps))},
       {str_cat("epoch ", fixed(state.progress.epoch, 1)), 1}},
      width, 1);
}

// "1,234 samples", of partial steps; empty: none.
std::string left_out_text(const RunState& state) {
  const std::int64_t dropped = state.progress.dropped_samples;
  return dropped > 0 ? str_cat(with_commas(dropped), " samples") : "";
}

std::vector<Piece> rates(const RunState& state) {
  std::vector<Piece> pieces;
  const auto add = [&](std::string text, int goes) { pieces.push_back({std::move(text), goes}); };
  if (state.progress.loss) add(str_cat("loss ", loss_text(*state.progress.loss)), 0);
  if (state.progress.test_auc) {
    add(str_cat("AUC ", fixed(*state.progress.test_auc, 4)), 4);
  } else if (state.progress.test_accuracy) {
    add(str_cat("accuracy ", fixed(*state.progress.test_accuracy * 100, 2), " %"), 4);
  }
  if (state.progress.test_loss && !state.progress.test_accuracy)
    add(str_cat("test loss ", loss_text(*state.progress.test_loss)), 4);
  if (!state.target.empty()) add(str_cat("(target ", sanitize_line(state.target), ")"), 1);
  if (state.progress.samples_per_second >= 1)
    add(str_cat(with_commas(static_cast<std::int64_t>(state.progress.samples_per_second)), " samples/s"), 2);
  if (const std::string text = left_out_text(state); !text.empty()) add(str_cat("left out ", text), 1);
  const bool goes_on = !is_finished(state) && state.progress.step < state.progress.total_steps;
  if (state.progress.eta_seconds && goes_on)
    add(str_cat("ETA ", human_seconds(*state.progress.eta_seconds)), 3);
  return pieces;
}

std::string rates_line(const RunState& state) {
  const auto lines = fit_lines(rates(state), kAnyWidth, 1);
  return lines.empty() ? std::string() : lines[0];
}

// What tells a straggler goes last.
constexpr Column kColumns[] = {
    {"MEMBER"},           {"PID", true, 1},  {"PHASE", false, 3},   {"STEP", true, 7},   {"INPUT", true, 5},
    {"COMPUTE", true, 6}, {"WAIT", true, 8}, {"TRANSFER", true, 4}, {"UPDATE", true, 2}, {"TOTAL ms", true}};

// The members' table, at most `columns` wide and of at most `most` members.
std::vector<std::string> members_table(const RunState& state, const Terminal& terminal, int columns,
                                       int most) {
  if (state.members.empty()) return {};
  const bool on_nodes = state.owner_pid == 0;  // on a cluster, which tells no process ids
  std::vector<Row> rows;
  const auto limit = static_cast<std::size_t>(most);
  for (const api::MemberStatus& m : state.members) {
    if (rows.size() == limit) break;
    const std::string step =
        m.telemetry.server ? "-" : with_commas(m.step);  // servers count updates: their own table
    const MemberTelemetry& t = m.telemetry;
    rows.push_back({member_name(m.role, m.index),
                    on_nodes    ? m.host
                    : m.pid > 0 ? str_cat(m.pid)
                                : "-",
                    m.phase, step, ms(t.input_ms), ms(t.compute_ms), ms(t.wait_ms), ms(t.transfer_ms),
                    ms(t.update_ms), ms(t.step_ms)});
  }
  std::vector<Column> shown(std::begin(kColumns), std::end(kColumns));
  if (on_nodes) shown[1].name = "NODE";
  auto table = fit_table(shown, std::move(rows), columns);
  table[0] = styled(terminal, Style::kDim, table[0]);
  if (state.members.size() > limit) {
    const std::size_t left = state.members.size() - limit;
    table.push_back(str_cat("... and ", left, left == 1 ? " member more" : " members more"));
  }
  return table;
}

// Beside the members of their table: an empty line above, the names, and the line that sums the rest.
constexpr int kOtherLines = 3;
constexpr int kRowsForTwoRateLines = 12;
constexpr int kAnyHeight = 1 << 20;

// A frame taller than the screen could not be drawn over: what has scrolled away stays. The last row is the
// cursor's.
int height_of(const Terminal& terminal) {
  return terminal.interactive && terminal.rows > 0 ? std::max(terminal.rows - 1, 1) : kAnyHeight;
}

int width_of(const Terminal& terminal) {
  return terminal.interactive ? terminal.columns - 1 : kAnyWidth;
}

void fit_all(std::vector<std::string>& lines, const Terminal& terminal) {
  if (!terminal.interactive) return;
  for (std::string& line : lines) line = fit(terminal, line, terminal.columns - 1);
}

}  // namespace

std::vector<std::string> render_members(const RunState& state, const Terminal& terminal) {
  auto lines = members_table(state, terminal, width_of(terminal), kMaxMemberLines);
  for (std::string& line : render_servers(state, terminal, width_of(terminal), 2 * kMaxMemberLines))
    lines.push_back(std::move(line));
  for (std::string& line : render_gpus(state, terminal, width_of(terminal), kMaxMemberLines))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> render_dashboard(const RunState& state, const Terminal& terminal) {
  const int width = width_of(terminal);
  std::vector<std::string> lines;
  const auto add = [&](std::vector<std::string> more) {
    for (std::string& line : more) lines.push_back(std::move(line));
  };
  add(title_line(state, terminal, width));
  if (state.progress.total_steps > 0) add(bar_line(state, terminal, width));
  const bool low = terminal.rows > 0 && terminal.rows < kRowsForTwoRateLines;
  auto speeds = fit_lines(rates(state), width, low ? 1 : 2);
  if (speeds.empty()) speeds.emplace_back();
  add(std::move(speeds));
  for (const api::Straggler& each : state.status.stragglers) {
    const bool acts = each.action != api::StragglerAction::kReport && !each.why.empty();
    const std::string text = acts ? str_cat(each.message, "; ", each.why) : each.message;
    lines.push_back(styled(terminal, Style::kYellow, fit(terminal, sanitize_line(text), width)));
  }
  const auto& shares = state.status.view.rebalance;
  if (shares && !shares->even && state.status.stragglers.empty())
    lines.push_back(styled(terminal, Style::kDim, fit(terminal, sanitize_line(shares->message), width)));
  const int height = height_of(terminal);
  const auto room = [&] { return height - static_cast<int>(lines.size()); };
  if (!state.members.empty() && room() >= kOtherLines) {
    const int members = std::clamp(room() - kOtherLines, 1, kMaxMemberLines);
    lines.emplace_back();
    add(members_table(state, terminal, width, members));
    auto staleness = staleness_lines(state, width);
    const int left = room() - static_cast<int>(staleness.size());
    auto tables = render_servers(state, terminal, width, std::min(left, 2 * kMaxMemberLines));
    if (!tables.empty()) {
      add(std::move(tables));
      add(std::move(staleness));
    }
    add(render_gpus(state, terminal, width, std::min(room(), kMaxMemberLines)));
  }
  // Of a terminal with hardly a row, the first lines.
  if (room() < 0) lines.resize(static_cast<std::size_t>(height));
  fit_all(lines, terminal);
  return lines;
}

std::vector<std::string> render_summary(const RunState& state, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const char* label, std::string value) { rows.push_back({label, std::move(value)}); };
  if (state.target_seconds)
    row("target reached", str_cat(state.target, " after ", human_seconds(*state.target_seconds)));
  if (!state.target.empty() && !state.target_seconds && state.progress.step > 0)
    row("target", str_cat(state.target, state.target_reached ? " is reached"
                                        : is_finished(state) ? " was not reached"
                                                             : " is not reached yet"));
  if (state.progress.test_auc) row("test AUC", fixed(*state.progress.test_auc, 4));
  if (state.progress.test_accuracy)
    row("test accuracy", str_cat(fixed(*state.progress.test_accuracy * 100, 2), " %"));
  if (state.progress.test_loss) row("test loss", loss_text(*state.progress.test_loss));
  if (state.progress.loss) row("training loss", loss_text(*state.progress.loss));
  if (state.progress.total_steps > 0)
    row("steps",
        str_cat(with_commas(state.progress.step), " of ", with_commas(state.progress.total_steps), " (",
                with_commas(state.samples), " samples, ", fixed(state.progress.epoch, 2), " epochs)"));
  if (std::string text = gradients_text(state); !text.empty()) row("gradients", std::move(text));
  if (std::string text = staleness_text(state); !text.empty()) row("staleness", std::move(text));
  if (state.progress.samples_per_second >= 1)
    row("speed", str_cat(with_commas(static_cast<std::int64_t>(state.progress.samples_per_second)),
                         " samples/s, goodput ", fixed(state.progress.goodput * 100, 1), " %"));
  if (std::string text = left_out_text(state); !text.empty()) row("left out", std::move(text));
  if (!state.device.empty()) row("computed on", state.device);
  if (state.first_step_seconds) row("first step after", human_seconds(*state.first_step_seconds));
  row("time", human_seconds(state.elapsed_seconds));
  if (state.bytes_exchanged > 0) row("bytes exchanged", human_bytes(state.bytes_exchanged));
  if (!state.model.empty()) row("model", state.model);
  if (!state.checkpoint.empty()) row("checkpoint", state.checkpoint);
  if (!state.folder.empty()) row("logs", state.folder + "/logs");

  std::vector<std::string> lines;
  lines.push_back(str_cat(styled(terminal, Style::kBold, sanitize_line(state.name)), "  ",
                          styled(terminal, phase_style(state.phase), sanitize_line(state.phase)),
                          state.phase == "Failed" && !state.reason.empty()
                              ? str_cat(" (", sanitize_line(state.reason), ")")
                              : std::string()));
  for (std::string& line : align_table(rows, {})) lines.push_back("  " + line);
  return lines;  // not cut: paths are for copying
}

std::string render_progress_line(const RunState& state) {
  const std::string rates = rates_line(state);
  return str_cat("step ", state.progress.step, "/", state.progress.total_steps, "  epoch ",
                 fixed(state.progress.epoch, 2), rates.empty() ? "" : "  ", rates);
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
