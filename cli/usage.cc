#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "controller/api/suggest.h"

namespace paceline::cli {

namespace {

constexpr const char* kEmpty = "it is empty; is a variable of the shell not set?";

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string without_dashes(const std::string& word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// The option, with its dashes, that was probably meant; empty where none is near.
std::string meant_option(const std::string& wrong, const CLI::App& app, const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* taker : {command, &app}) {
    if (taker == nullptr) continue;
    for (const CLI::Option* option : taker->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  const std::string word = without_dashes(wrong);
  // --max-tokens for --tokens, as other programs call it.
  const auto ends_it = [&](const std::string& name) { return word.ends_with("-" + name); };
  const auto longer = std::find_if(names.begin(), names.end(), ends_it);
  const std::string meant = longer != names.end() ? *longer : api::nearest_name(word, names);
  return meant.empty() ? meant : "--" + meant;
}

std::string did_you_mean(const std::string& meant) {
  return meant.empty() ? meant : str_cat("; did you mean ", meant, "?");
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App* command = chosen.empty() ? nullptr : chosen[0];
  const std::vector<std::string> words = app.remaining(true);
  const std::string help =
      str_cat("see `", app.get_name(), command == nullptr ? "" : " " + command->get_name(), " --help`");
  // What nobody knows comes first: it is most likely why something else is missing.
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string option = word.substr(0, word.find('='));
    return str_cat("no option ", option, did_you_mean(meant_option(option, app, command)), "; ", help);
  }
  if (command == nullptr && !words.empty()) {
    const std::vector<std::string> commands = command_names(app);
    return str_cat("no command \"", words[0], "\"", did_you_mean(api::nearest_name(words[0], commands)),
                   "; the commands are ", absl::StrJoin(commands, ", "));
  }
  return str_cat(error.what(), "; ", help);
}

void refuse_empty_values(CLI::App& app) {
  const auto not_empty = [](const std::string& text) { return text.empty() ? kEmpty : ""; };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() != "TEXT") option->check(not_empty);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*command);
}

std::string missing_value(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return str_cat(word, ": ", kEmpty);
  }
  return "";
}

}  // namespace paceline::cli
