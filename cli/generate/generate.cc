// paceline generate [RUN]: what a trained gpt makes of a prompt, on a GPU where there is one.

#include "cli/generate/generate.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/device_choice.h"
#include "base/file.h"
#include "base/processors.h"
#include "base/program.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/interrupt.h"
#include "cli/generate/prompt.h"
#include "cli/generate/source.h"
#include "cli/generate/threads.h"
#include "cli/generate/token_printer.h"
#include "cli/number_checks.h"
#include "runtime/device/choose_device.h"
#include "runtime/generate/generate.h"
#include "runtime/tensor/compiler.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxPromptBytes = std::size_t{64} << 20;
constexpr std::int64_t kMaxTokens = 100'000'000, kMaxSamples = 10'000;
constexpr int kMaxThreads = 1024;

struct GenerateOptions {
  SourceOptions source;
  std::optional<std::string> prompt, prompt_file, prompt_tokens;
  std::int64_t tokens = 200, samples = 1;
  generate::Sampling sampling;
  std::uint64_t seed = 1;
  int threads = 0;  // 0: by the model's size
  bool json = false;
};

struct Prompt {
  std::vector<std::int32_t> tokens;
  bool shown = true;
};

absl::StatusOr<Prompt> read_prompt(const Session& session, const GenerateOptions& options, Writing writing,
                                   std::int64_t vocabulary) {
  const int given =
      options.prompt.has_value() + options.prompt_file.has_value() + options.prompt_tokens.has_value();
  if (given > 1) return absl::InvalidArgumentError("give one of --prompt, --prompt-file and --prompt-tokens");
  Prompt prompt;
  if (given == 0) {
    if (writing == Writing::kNumbers)
      return absl::InvalidArgumentError(
          "there is nothing to go on from: the job's data are token numbers; give --prompt-tokens N,N,...");
    return Prompt{{'\n'}, false};
  }
  if (options.prompt_tokens) {
    const std::int64_t below = writing == Writing::kBytes ? std::min(vocabulary, kByteTokens) : vocabulary;
    PL_ASSIGN_OR_RETURN(prompt.tokens, tokens_of_numbers(*options.prompt_tokens, below));
  } else {
    std::string text = options.prompt.value_or("");
    if (options.prompt_file) {
      const std::string& path = *options.prompt_file;
      const bool standard_input = path == "-";
      if (standard_input && ::isatty(STDIN_FILENO) == 1)
        std::cerr << session.program << ": reads the prompt from the terminal, until ctrl-D\n" << std::flush;
      PL_ASSIGN_OR_RETURN(text, read_file(standard_input ? "/dev/stdin" : path, kMaxPromptBytes));
    }
    if (writing == Writing::kNumbers && options.prompt)
      return absl::InvalidArgumentError(
          "--prompt is text, and the job's data are token numbers; give --prompt-tokens N,N,...");
    PL_ASSIGN_OR_RETURN(prompt.tokens, writing == Writing::kBytes ? tokens_of_text(text, vocabulary)
                                                                  : tokens_of_numbers(text, vocabulary));
  }
  if (prompt.tokens.empty())
    return absl::InvalidArgumentError("the prompt is empty; the model goes on from at least one token");
  return prompt;
}

std::string text_of(const std::vector<std::int32_t>& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

// One command: what is chosen by then, and the samples.
class Generation {
 public:
  Generation(const Session& session, const GenerateOptions& options, std::stop_token stop)
      : session_(session), options_(options), stop_(std::move(stop)) {}

  absl::Status run() {
    PL_RETURN_IF_ERROR(generate::check(options_.sampling));
    PL_ASSIGN_OR_RETURN(
        const DeviceSettings settings,
        parse_device_settings({std::getenv("PACELINE_DEVICE"), std::getenv("PACELINE_CUDA_GRAPHS")}));
    PL_ASSIGN_OR_RETURN(source_, open_source(
                                     session_, options_.source, [this] { return go_on(); }, std::cerr));
    const v1::GptSpec& gpt = source_.spec.model().gpt();
    writing_ = writing_of(source_.spec.data());
    PL_ASSIGN_OR_RETURN(prompt_, read_prompt(session_, options_, writing_, gpt.vocabulary_size()));
    const int threads = threads_for(source_.weights.values.size(), options_.threads, usable_processors());
    // Its weights are copied once: whether they are pinned is nobody's concern.
    const device::GpuUse use{.graphs = settings.cuda_graphs, .no_graphs = [this](const absl::Status& why) {
                               std::cerr << session_.program << ": no CUDA graphs: " << why.message() << "\n";
                             }};
    PL_ASSIGN_OR_RETURN(device::ChosenDevice chosen, device::choose_device(settings.choice, 0, threads, use));
    device_ = chosen.words;
    print_source(chosen.warning);
    PL_ASSIGN_OR_RETURN(
        const auto scorer,
        generate::Scorer::create(gpt,
                                 source_.spec.precision() == v1::PRECISION_BF16 ? tensor::Precision::kBF16
                                                                                : tensor::Precision::kF32,
                                 std::move(chosen.device), std::move(source_.weights.values)));
    return options_.json ? print_json(*scorer) : print_text(*scorer);
  }

 private:
  absl::Status go_on() const {
    return stop_.stop_requested() ? absl::CancelledError("asked to end") : absl::OkStatus();
  }

  void print_source(const std::string& warning) const {
    for (const std::string& refused : source_.weights.refused)
      std::cerr << session_.program << ": a damaged checkpoint is passed over: " << refused << "\n";
    if (!warning.empty()) std::cerr << session_.program << ": " << warning << "\n";
    std::cerr << session_.program << ": goes on from " << source_.weights.path;
    if (source_.weights.step >= 0) std::cerr << " (step " << source_.weights.step << ")";
    std::cerr << ", computes " << device_ << "\n" << std::flush;
  }

  generate::Request request(std::int64_t sample) const {
    return {.prompt = prompt_.tokens,
            .tokens = options_.tokens,
            .sampling = options_.sampling,
            .below = writing_ == Writing::kBytes ? kByteTokens : 0,
            .seed = options_.seed,
            .sample = static_cast<std::uint64_t>(sample)};
  }

  // As they come.
  absl::Status print_text(generate::Scorer& scorer) const {
    for (std::int64_t sample = 0; sample < options_.samples; ++sample) {
      if (options_.samples > 1) std::cout << "--- " << sample + 1 << " of " << options_.samples << " ---\n";
      TokenPrinter printer(std::cout, writing_, ::isatty(STDOUT_FILENO) == 1);
      bool listens = !prompt_.shown || printer.print(prompt_.tokens);
      if (!listens) return absl::OkStatus();
      const absl::Status made = generate::generate(scorer, request(sample), [&](std::int32_t token) {
        return !stop_.stop_requested() && (listens = printer.print(token));
      });
      listens = printer.end() && listens;
      PL_RETURN_IF_ERROR(made);
      PL_RETURN_IF_ERROR(go_on());
      if (!listens) return absl::OkStatus();  // main() tells whether something was lost
    }
    return absl::OkStatus();
  }

  absl::Status print_json(generate::Scorer& scorer) const {
    using Json = nlohmann::ordered_json;
    Json samples = Json::array();
    for (std::int64_t sample = 0; sample < options_.samples; ++sample) {
      std::vector<std::int32_t> tokens;
      PL_RETURN_IF_ERROR(generate::generate(scorer, request(sample), [&](std::int32_t token) {
        tokens.push_back(token);
        return !stop_.stop_requested();
      }));
      PL_RETURN_IF_ERROR(go_on());
      Json made;
      if (writing_ == Writing::kBytes) made["text"] = text_of(tokens);
      made["tokens"] = tokens;
      samples.push_back(std::move(made));
    }
    Json all;
    if (!source_.run.empty()) all["run"] = source_.run;
    all["job"] = source_.job;
    all["weights"] = source_.weights.path;
    if (source_.weights.step >= 0) all["step"] = source_.weights.step;
    all["device"] = device_;
    all["seed"] = options_.seed;
    all["temperature"] = options_.sampling.temperature;
    all["topK"] = options_.sampling.top_k;
    all["topP"] = options_.sampling.top_p;
    if (writing_ == Writing::kBytes) all["prompt"] = text_of(prompt_.tokens);
    all["promptTokens"] = prompt_.tokens;
    all["samples"] = std::move(samples);
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
    return absl::OkStatus();
  }

  const Session& session_;
  const GenerateOptions& options_;
  const std::stop_token stop_;
  Source source_;
  Writing writing_ = Writing::kBytes;
  Prompt prompt_;
  std::string device_;
};

void add_source_options(CLI::App& command, SourceOptions& source) {
  add_value(command, "RUN", source.run, "",
            "Name of a run (default: of those of a gpt the newest that goes on, else the newest)");
  add_value(command, "--checkpoint", source.checkpoint, "FOLDER",
            "Not a run's newest weights: this checkpoint, or the newest in this folder, or a run's");
  add_value(command, "--model", source.model, "FOLDER",
            "Not a run's newest weights: the model.safetensors in this folder, or a run's, or this file");
  add_value(command, "--job", source.job, "FILE",
            "The TrainingJob of --checkpoint or --model (default: the job.yaml of the run that they are in)");
}

void add_prompt_options(CLI::App& command, GenerateOptions& options) {
  add_value(command, "--prompt", options.prompt, "TEXT",
            "Text to go on from (default: a newline, not printed)");
  add_value(command, "--prompt-file", options.prompt_file, "FILE",
            "A file's text to go on from, or its token numbers; - is standard input");
  add_value(command, "--prompt-tokens", options.prompt_tokens, "N,N,...", "Token numbers to go on from");
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "generate", "Let a trained gpt go on from a prompt: text, or numbers where its data are tokens");
  auto options = std::make_shared<GenerateOptions>();
  add_source_options(*command, options->source);
  add_prompt_options(*command, *options);
  add_value(*command, "--tokens", options->tokens, "N", "How many to make (default: 200)")
      ->check(whole_number_between<std::int64_t>(1, kMaxTokens));
  add_value(*command, "--temperature", options->sampling.temperature, "NUMBER",
            "Below 1 likelier tokens are favoured, above 1 less likely ones; 0: always the likeliest "
            "(default: 1)")
      ->check(number_between(0, 1e6));
  add_value(*command, "--top-k", options->sampling.top_k, "K", "Only of the K likeliest (default: 0: of all)")
      ->check(whole_number_between(0, 1 << 24));
  add_value(*command, "--top-p", options->sampling.top_p, "NUMBER",
            "Only of the likeliest that together have this probability (default: 1: of all)")
      ->check(number_above(0, 1));
  add_value(*command, "--seed", options->seed, "N",
            "Of the choices (default: 1): the same one makes the same")
      ->check(whole_number());
  add_value(*command, "--threads", options->threads, "N",
            "Of processors (default: 1 for a small model, for others all processors)")
      ->check(whole_number_between(1, kMaxThreads));
  add_value(*command, "--samples", options->samples, "N", "So many, one after the other (default: 1)")
      ->check(whole_number_between<std::int64_t>(1, kMaxSamples));
  command->add_flag("--json", options->json, "Print JSON, once all is made");
  command->footer(session.examples(
      {{false, "generate --prompt \"The licensee may \""},
       {false, "generate gpt-char --prompt-file letter.txt --tokens 500 --temperature 0.8 --top-k 50"},
       {false, "generate --checkpoint runs/gpt-char/checkpoints/step-000001000 --samples 3 --seed 7"},
       {false, "generate gpt2 --prompt-tokens 464,5156 --temperature 0 --json"}}));
  command->callback([&session, options] {
    ::signal(SIGPIPE, SIG_IGN);                                // a reader that has gone ends it in order
    const auto interrupt = Interrupt::open(kExitInterrupted);  // before any thread is made
    if (!interrupt.ok()) return session.fail(interrupt.status());
    const absl::Status status = Generation(session, *options, (*interrupt)->token()).run();
    if (absl::IsCancelled(status)) {
      session.exit_code = kExitInterrupted;  // who pressed ctrl-C knows
    } else if (!status.ok()) {
      session.fail(status);
    }
  });
}

}  // namespace paceline::cli
