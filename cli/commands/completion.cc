// paceline completion SHELL: a script that completes commands, options and their values, files, names of runs
// and of their members, and of jobs on a cluster. The script is made from the application itself, so that it
// can't fall behind.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"

namespace paceline::cli {

namespace {

bool takes_run(const std::string& command) {
  return command == "get" || command == "describe" || command == "logs" || command == "top" ||
         command == "delete" || command == "plot" || command == "generate" || command == "suspend" ||
         command == "resume" || command == "checkpoint" || command == "replace";
}

bool takes_job(const std::string& command) {
  return command == "events" || command == "scale";
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands({});
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

// "-o", "--output".
std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> words;
  for (const std::string& name : option.get_snames()) words.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.push_back("--" + name);
  return words;
}

std::string options_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return joined(words, " ");
}

// The words that an enumerated option or positional allows, from the {a,b,c} that --help shows; else none.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> values;
  if (begin == std::string::npos || end == std::string::npos) return values;
  std::istringstream list(type.substr(begin + 1, end - begin - 1));
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  return values;
}

bool takes_value(const CLI::Option& option) {
  return !option.get_positional() && option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
}

// Options whose value is the word behind them. --resume may stand alone: what follows is its run, or an
// option.
std::vector<std::string> valued_options(const CLI::App& app) {
  std::vector<const CLI::App*> all = commands_of(app);
  all.push_back(&app);
  std::vector<std::string> words;
  for (const CLI::App* command : all) {
    for (const CLI::Option* option : command->get_options()) {
      if (!takes_value(*option)) continue;
      for (const std::string& word : spellings(*option)) {
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
      }
    }
  }
  return words;
}

enum class Kind : std::uint8_t { kNothing, kWords, kRuns, kFiles, kFolders };

// What an option's value is completed from.
Kind kind_of(const CLI::Option& option) {
  if (!values_of(option).empty()) return Kind::kWords;
  const std::string type = option.get_type_name();
  if (type == "[RUN]") return Kind::kRuns;
  return type == "FILE" ? Kind::kFiles : type == "FOLDER" ? Kind::kFolders : Kind::kNothing;
}

// Shell words: the names of runs, or of jobs, and a run's members. $state holds --state-dir as it was given,
// if it was, $place what chooses a cluster.
constexpr char kBashHelpers[] =
    R"sh(_paceline_runs() { timeout 5 paceline "${state[@]}" get "${place[@]}" -o name 2>/dev/null | sed 's#.*/##'; }
_paceline_jobs() { ((${#place[@]})) || place=(--cluster); _paceline_runs; }
_paceline_members() {
  paceline "${state[@]}" get "$1" -o json 2>/dev/null | sed -n '/"run": {/,${
    /^ \{20\}"index": /h
    /^ \{20\}"role": /{G;s/.*"role": "\(.*\)",*\n.*"index": \([0-9]*\),*$/\1-\2/p;}
  }'
}
)sh";

std::string bash_answer(Kind kind, const std::vector<std::string>& values) {
  if (kind == Kind::kWords) return "-W '" + joined(values, " ") + "'";
  if (kind == Kind::kRuns) return "-W \"$(_paceline_runs)\"";
  if (kind == Kind::kFiles) return "-f";
  return kind == Kind::kFolders ? "-d" : "-W ''";
}

// One line of the table of options with values: `run:--output) COMPREPLY=(...)`.
void bash_values(std::ostream& out, const std::string& command, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!takes_value(*option)) continue;
    std::vector<std::string> patterns;
    for (const std::string& word : spellings(*option)) patterns.push_back(command + ":" + word);
    out << "    " << joined(patterns, " | ") << ") COMPREPLY=($(compgen -P \"$lead\" "
        << bash_answer(kind_of(*option), values_of(*option)) << " -- \"$cur\")); return ;;\n";
  }
}

// What a command's positionals are completed from.
std::string bash_positional(const CLI::App& command) {
  const std::string name = command.get_name();
  if (name == "logs")
    return "case ${#given[@]} in 0) COMPREPLY=($(compgen -W \"$(_paceline_runs)\" -- \"$cur\")) ;;\n"
           "        1) COMPREPLY=($(compgen -W \"$(_paceline_members \"${given[0]}\")\" -- \"$cur\")) ;; "
           "esac";
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && !values_of(*option).empty())
      return "COMPREPLY=($(compgen " + bash_answer(Kind::kWords, values_of(*option)) + " -- \"$cur\"))";
  }
  if (takes_job(name)) return "COMPREPLY=($(compgen -W \"$(_paceline_jobs)\" -- \"$cur\"))";
  return "COMPREPLY=($(compgen " + bash_answer(takes_run(name) ? Kind::kRuns : Kind::kFiles, {}) +
         " -- \"$cur\"))";
}

std::string bash(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* sub : commands_of(app)) commands.push_back(sub->get_name());
  std::ostringstream values, positionals;
  bash_values(values, "*", app);
  for (const CLI::App* sub : commands_of(app)) {
    bash_values(values, sub->get_name(), *sub);
    positionals << "    " << sub->get_name() << ")\n      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '"
                << options_of(*sub) << " --state-dir' -- \"$cur\")); return; fi\n      "
                << bash_positional(*sub) << " ;;\n";
  }
  std::ostringstream out;
  out << "# bash completion for paceline: eval \"$(paceline completion bash)\"\n"
      << kBashHelpers << "_paceline() {\n"
      << "  local cur=${COMP_WORDS[COMP_CWORD]} prev= command= word i skip=0 lead=\n"
         "  local -a state=() given=() place=()\n"
         "  [[ $cur == '=' ]] && cur=\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    [[ $word == '=' ]] && continue\n"
         "    if ((skip)) && [[ $word != -* ]]; then\n"
         "      [[ $prev == --state-dir ]] && state=(--state-dir \"$word\")\n"
         "      case $prev in -n | --namespace | --context | --kubeconfig) place+=(\"$prev\" \"$word\") ;; "
         "esac\n"
         "      skip=0 prev=\n"
         "      continue\n"
         "    fi\n"
         "    skip=0 prev=\n"
         "    case $word in\n"
      << "      " << joined(valued_options(app), " | ") << ") skip=1 prev=$word ;;\n"
      << "      -*) ;;\n"
         "      *) if [[ -z $command ]]; then command=$word; else given+=(\"$word\"); fi ;;\n"
         "    esac\n"
         "  done\n"
         "  [[ $cur == --*=* ]] && { prev=${cur%%=*}; lead=${prev}=; cur=${cur#*=}; }\n"  // zsh: one word
         "  [[ $cur == -* ]] || case $command:$prev in\n"
      << values.str() << "  esac\n  case $command in\n"
      << positionals.str() << "    '') COMPREPLY=($(compgen -W '" << joined(commands, " ") << " "
      << options_of(app) << "' -- \"$cur\")) ;;\n  esac\n}\n"
      << "complete -o filenames -F _paceline paceline\n";
  return out.str();
}

std::string zsh(const CLI::App& app) {
  return "# zsh completion for paceline: source <(paceline completion zsh)\nautoload -U +X bashcompinit && "
         "bashcompinit\n" +
         bash(app);
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "'" + text + "'";
}

constexpr char kFishHelpers[] = R"sh(function __paceline_runs
  paceline get -o name 2>/dev/null
end
function __paceline_jobs
  timeout 5 paceline get --cluster -o name 2>/dev/null | sed 's#.*/##'
end
function __paceline_given
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if string match -q -- '-*' $word
      contains -- $word $__paceline_valued; and set skip 1; or set skip 0
    else if test $skip = 1
      set skip 0
    else
      echo $word
    end
  end
end
function __paceline_members
  set -l given (__paceline_given)
  paceline get $given[2] -o json 2>/dev/null | sed -n '/"run": {/,${
    /^ \{20\}"index": /h
    /^ \{20\}"role": /{G;s/.*"role": "\(.*\)",*\n.*"index": \([0-9]*\),*$/\1-\2/p;}
  }'
end
)sh";

// One option of one command, with its values.
void fish_option(std::ostream& out, const std::string& seen, const CLI::Option& option) {
  if (option.get_positional()) return;
  out << "complete -c paceline" << seen;
  for (const std::string& name : option.get_snames()) out << " -s " << name;
  for (const std::string& name : option.get_lnames()) out << " -l " << name;
  out << " -d " << quoted(option.get_description());
  const Kind kind = kind_of(option);
  if (kind == Kind::kWords) out << " -x -a " << quoted(joined(values_of(option), " "));
  if (kind == Kind::kRuns) out << " -x -a '(__paceline_runs)'";
  if (kind == Kind::kFiles) out << " -r -F";
  if (kind == Kind::kFolders) out << " -x -a '(__fish_complete_directories)'";
  if (kind == Kind::kNothing && takes_value(option)) out << " -x";
  out << "\n";
}

std::string fish(const CLI::App& app) {
  std::ostringstream out;
  out << "# fish completion for paceline: paceline completion fish | source\nset -g __paceline_valued "
      << joined(valued_options(app), " ") << "\n"
      << kFishHelpers;
  for (const CLI::Option* option : app.get_options()) fish_option(out, "", *option);
  for (const CLI::App* sub : commands_of(app)) {
    const std::string name = sub->get_name(), seen = " -n '__fish_seen_subcommand_from " + name + "'";
    out << "complete -c paceline -n __fish_use_subcommand -f -a " << name << " -d "
        << quoted(sub->get_description()) << "\n";
    for (const CLI::Option* option : sub->get_options()) {
      fish_option(out, seen, *option);
      if (option->get_positional() && !values_of(*option).empty())
        out << "complete -c paceline" << seen << " -f -a " << quoted(joined(values_of(*option), " ")) << "\n";
    }
    if (name == "logs") {
      out << "complete -c paceline -n '__fish_seen_subcommand_from logs; and test (count (__paceline_given)) "
             "-eq 1' -f "
             "-a '(__paceline_runs)'\n"
          << "complete -c paceline -n '__fish_seen_subcommand_from logs; and test (count (__paceline_given)) "
             "-eq 2' -f "
             "-a '(__paceline_members)'\n";
    } else if (takes_run(name) || takes_job(name)) {
      out << "complete -c paceline" << seen << " -f -a '(__paceline_" << (takes_job(name) ? "jobs" : "runs")
          << ")'\n";
    }
  }
  return out.str();
}

}  // namespace

void add_completion(CLI::App& app, Session& /*session*/) {
  auto* command = app.add_subcommand("completion", "Print a shell's completion script");
  auto shell = std::make_shared<std::string>();
  add_value(*command, "SHELL", *shell, "SHELL", "Of which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Example, for good:\n  paceline completion bash > ~/.local/share/bash-completion/completions/paceline");
  command->callback([&app, shell] {
    std::cout << (*shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app)) << std::flush;
  });
}

}  // namespace paceline::cli
