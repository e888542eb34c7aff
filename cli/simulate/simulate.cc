// paceline simulate stragglers: what stragglers cost in each mode of parameter servers, in virtual time.
// paceline simulate training FILE: how long a job takes to its target in each mode: real gradients, simulated
// delays.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/file.h"
#include "base/pluralize.h"
#include "base/status.h"
#include "base/whole_number.h"
#include "cli/commands/job_file.h"
#include "cli/number_checks.h"
#include "cli/plot/picture.h"
#include "cli/simulate/report.h"
#include "cli/simulate/simulate.h"
#include "controller/api/training_spec.h"

namespace paceline::cli {

namespace {

constexpr double kSlowFactor = 10;
constexpr std::size_t kMaxListed = 20;
constexpr int kRoundsForBackups = 20'000;

struct SimulateOptions {
  std::string what, file;
  std::string workers, sigma, staleness;  // numbers, with commas between
  double mu = 3;
  Step steps = 200, replaced_after = 20;
  std::uint64_t seed = 1;
  int slow = 0, repeats = 5, backups = -1;
  double lambda = 0.5;
  bool stop_late = false, json = false;
  std::string output;
};

std::string number_fault(std::string_view word, int low, int high) {
  return whole_number_fault(word, low, high);
}

std::string number_fault(std::string_view word, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && value >= low && value <= high) return "";
  return str_cat("\"", word, "\" is no number from ", low, " to ", high);
}

template <typename Number>
absl::StatusOr<std::vector<Number>> numbers(std::string_view option, const std::string& text, Number low,
                                            Number high) {
  std::vector<Number> values;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    const std::string fault = number_fault(word, low, high);
    if (!fault.empty()) {
      return absl::InvalidArgumentError(
          str_cat(option, " ", text, ": ", fault, "; allowed: such numbers with commas between"));
    }
    Number value{};
    std::from_chars(word.data(), word.data() + word.size(), value);
    values.push_back(value);
  }
  if (values.empty() || values.size() > kMaxListed) {
    return absl::InvalidArgumentError(
        str_cat(option, " has ", values.size(), " numbers; allowed: 1 to ", kMaxListed));
  }
  return values;
}

struct Numbers {
  std::vector<int> workers, staleness;
  std::vector<double> sigmas;
};

absl::StatusOr<Numbers> read_numbers(const SimulateOptions& options, const std::string& default_workers,
                                     const std::string& default_sigma, const std::string& default_staleness) {
  const auto or_default = [](const std::string& text, const std::string& other) {
    return text.empty() ? other : text;
  };
  Numbers read;
  PL_ASSIGN_OR_RETURN(read.workers,
                      numbers("--workers", or_default(options.workers, default_workers), 1, 10'000));
  PL_ASSIGN_OR_RETURN(read.sigmas, numbers("--sigma", or_default(options.sigma, default_sigma), 0.0, 3.0));
  PL_ASSIGN_OR_RETURN(read.staleness,
                      numbers("--staleness", or_default(options.staleness, default_staleness), 0, 1'000'000));
  const int fewest = *std::min_element(read.workers.begin(), read.workers.end());
  const auto check = [&](std::string_view option, int value) {
    if (value < fewest) return absl::OkStatus();
    return absl::InvalidArgumentError(str_cat(option, " is ", value, " of ",
                                              pluralize(fewest, "worker", "workers"), "; allowed: 0 to ",
                                              fewest - 1, ", or more --workers"));
  };
  PL_RETURN_IF_ERROR(check("--slow", options.slow));
  PL_RETURN_IF_ERROR(check("--backups", options.backups));
  return read;
}

simulation::DelayModel delays_of(const SimulateOptions& options, double sigma) {
  return {.log_mean = options.mu,
          .log_deviation = sigma,
          .slow_workers = options.slow,
          .slow_factor = kSlowFactor};
}

std::string heading(const SimulateOptions& options) {
  std::ostringstream text;
  text << "A gradient takes LogNormal(" << options.mu << ", sigma) ms";
  if (options.slow > 0)
    text << ", " << options.slow << " of the workers always " << kSlowFactor << " times longer";
  text << "; seed " << options.seed;
  return text.str();
}

absl::Status draw(const SimulateOptions& options, const std::string& title,
                  const std::vector<Chart>& charts) {
  if (options.output.empty()) return absl::OkStatus();
  const std::string path = std::filesystem::absolute(options.output).lexically_normal().string();
  PL_RETURN_IF_ERROR(write_named_file(path, picture(title, charts)));
  if (!options.json) std::cout << path << "\n";
  return absl::OkStatus();
}

absl::Status simulate_stragglers(const SimulateOptions& options) {
  PL_ASSIGN_OR_RETURN(const Numbers numbers, read_numbers(options, "10,100,1000", "0.1,0.3,0.6", "1,4"));
  simulation::StragglerOptions study{.steps = options.steps,
                                     .seed = options.seed,
                                     .staleness = numbers.staleness,
                                     .late_workers_stop = options.stop_late,
                                     .replaced_after = options.replaced_after};
  if (!options.json)
    std::cout << heading(options) << ", " << pluralize(options.steps, "step", "steps") << "\n" << std::flush;
  std::vector<simulation::StragglerCase> results;
  for (const double sigma : numbers.sigmas) {
    for (const int workers : numbers.workers) {
      study.delays = delays_of(options, sigma);
      PL_ASSIGN_OR_RETURN(auto result, simulation::straggler_case(workers, sigma, study));
      if (!options.json) std::cout << "\n" << stragglers_text(result) << std::flush;
      results.push_back(std::move(result));
    }
  }
  if (options.json) std::cout << stragglers_json(results, study) << std::flush;
  return draw(options, "Stragglers", stragglers_charts(results));
}

std::vector<simulation::Mode> modes_for(const SimulateOptions& options, const Numbers& numbers, int workers,
                                        double sigma) {
  using namespace simulation;
  const DelayModel delays = delays_of(options, sigma);
  int spare = options.backups;
  if (spare < 0) spare = best_backups(order_statistics(delays, workers, kRoundsForBackups, options.seed));
  std::vector<Mode> modes = modes_to_compare(workers, spare, numbers.staleness);
  if (options.lambda > 0) modes.push_back(delay_compensated(workers, options.lambda));
  return modes;
}

absl::StatusOr<TrainingCase> train(simulation::VirtualTraining& training, const v1::TrainingSpec& spec,
                                   const SimulateOptions& options, const Numbers& numbers, int workers,
                                   double sigma) {
  TrainingCase result{.workers = workers, .log_deviation = sigma};
  if (spec.has_target()) {
    std::ostringstream target;
    target << spec.target().metric() << " " << spec.target().value();
    result.target = target.str();
  }
  for (const simulation::Mode& mode : modes_for(options, numbers, workers, sigma)) {
    TrainedMode trained;
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      const auto offset = static_cast<std::uint64_t>(repeat);
      PL_ASSIGN_OR_RETURN(auto run, training.run(mode, {.delays = delays_of(options, sigma),
                                                        .seed = options.seed + offset,
                                                        .training_seed = spec.seed() + offset}));
      trained.runs.push_back(std::move(run));
    }
    result.modes.push_back(std::move(trained));
  }
  return result;
}

absl::Status simulate_training(const SimulateOptions& options) {
  PL_ASSIGN_OR_RETURN(const JobFile file, load_job_file(options.file, std::cerr));
  if (!file.job.spec.training)
    return absl::InvalidArgumentError(
        str_cat(options.file, ": spec.training is missing: there is nothing to train"));
  const DataFiles data = look_for_data_files(file);
  PL_RETURN_IF_ERROR(data.unread);
  if (!data.missing.empty()) return absl::NotFoundError(str_cat("no such file: ", data.missing[0]));
  PL_ASSIGN_OR_RETURN(const v1::TrainingSpec spec,
                      api::make_training_spec(file.job, {.base_folder = file.base_folder}));
  if (spec.model().has_wide_and_deep()) {
    return absl::InvalidArgumentError(
        str_cat(options.file,
                ": spec.training.model.type: wide-and-deep has rows on servers, which the simulation lacks; "
                "allowed: mlp, cnn, gpt"));
  }
  const std::int64_t workers = std::max<std::int64_t>(1, api::trainer_count(file.job));
  PL_ASSIGN_OR_RETURN(const Numbers numbers, read_numbers(options, str_cat(workers), "0.3", "4"));
  PL_ASSIGN_OR_RETURN(const auto training, simulation::VirtualTraining::open(spec));
  if (!options.json)
    std::cout << heading(options) << ", the middle of " << options.repeats << "\n" << std::flush;
  std::vector<TrainingCase> results;
  for (const double sigma : numbers.sigmas) {
    for (const int count : numbers.workers) {
      PL_ASSIGN_OR_RETURN(TrainingCase result, train(*training, spec, options, numbers, count, sigma));
      if (!options.json) std::cout << "\n" << training_text(result) << std::flush;
      results.push_back(std::move(result));
    }
  }
  if (options.json) std::cout << training_json(results, options.seed) << std::flush;
  return draw(options, str_cat(file.job.metadata.name, " in virtual time"), training_charts(results));
}

// Options that the other simulation has.
absl::Status check_options(const CLI::App& command, const SimulateOptions& options) {
  const bool training = options.what == "training";
  if (training == options.file.empty()) {
    return absl::InvalidArgumentError(training
                                          ? "simulate training needs the file of a TrainingJob"
                                          : str_cat("simulate stragglers takes no file: ", options.file));
  }
  for (const char* name : {"--steps", "--stop-late"}) {
    if (training && command.count(name) > 0)
      return absl::InvalidArgumentError(str_cat(name, " is for simulate stragglers alone"));
  }
  for (const char* name : {"--repeats", "--backups", "--lambda"}) {
    if (!training && command.count(name) > 0)
      return absl::InvalidArgumentError(str_cat(name, " is for simulate training alone"));
  }
  return absl::OkStatus();
}

absl::Status simulate(const CLI::App& command, const SimulateOptions& options) {
  PL_RETURN_IF_ERROR(check_options(command, options));
  return options.what == "training" ? simulate_training(options) : simulate_stragglers(options);
}

}  // namespace

void add_simulate(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "simulate", "Compare the modes of parameter servers in virtual time: stragglers, or a job's training");
  auto options = std::make_shared<SimulateOptions>();
  add_value(*command, "WHAT", options->what, "WHAT",
            "stragglers: step times and rates; training: how long a job takes to its target")
      ->required()
      ->check(CLI::IsMember({"stragglers", "training"}));
  add_value(*command, "FILE", options->file, "",
            "training: TrainingJob file, YAML or JSON; - is standard input");
  const auto list = [&](const char* name, std::string& value, const char* help) {
    add_value(*command, name, value, "N,N,...", help);
  };
  list("--workers", options->workers, "How many workers (default: 10,100,1000; training: the job's)");
  list("--sigma", options->sigma, "Spread of the delays (default: 0.1,0.3,0.6; training: 0.3)");
  list("--staleness", options->staleness, "Of bounded staleness (default: 1,4; training: 4)");
  add_value(*command, "--mu", options->mu, "NUMBER", "Logarithm of the median delay in ms (default: 3)")
      ->check(number_between(-10, 20));
  add_value(*command, "--slow", options->slow, "N", "So many workers are always 10 times slower (default: 0)")
      ->check(whole_number_between(0, 10'000));
  add_value(*command, "--replaced-after", options->replaced_after, "N",
            "stragglers: with --slow, steps until other workers have their places in one more mode "
            "(default: 20, as many as it takes to find them)")
      ->check(whole_number_between<Step>(0, 1'000'000));
  add_value(*command, "--steps", options->steps, "N", "stragglers: steps of each simulation (default: 200)")
      ->check(whole_number_between<Step>(1, 1'000'000));
  command->add_flag("--stop-late", options->stop_late,
                    "stragglers: workers whose gradient has become too late stop at once");
  add_value(*command, "--repeats", options->repeats, "N",
            "training: trainings of each mode, each with seeds of its own (default: 5)")
      ->check(whole_number_between(1, 100));
  add_value(*command, "--backups", options->backups, "N",
            "training: backup workers (default: the best on paper)")
      ->check(whole_number_between(0, 10'000));
  add_value(*command, "--lambda", options->lambda, "NUMBER",
            "training: delay compensation (default: 0.5; 0 leaves it out)")
      ->check(number_between(0, 1e6));
  add_value(*command, "--seed", options->seed, "N", "Of the delays (default: 1)")->check(whole_number());
  command->add_flag("--json", options->json, "Print JSON");
  add_value(*command, "-o,--output", options->output, "FILE", "Draw charts, too, as SVG into this file");
  command->footer(
      "Examples:\n  paceline simulate stragglers -o stragglers.svg\n"
      "  paceline simulate stragglers --workers 100 --sigma 0.1 --json\n"
      "  paceline simulate training examples/digits-allreduce.yaml --workers 16 --sigma 0.3 -o modes.svg");
  command->callback([&session, command, options] {
    if (const absl::Status status = simulate(*command, *options); !status.ok()) session.fail(status);
  });
}

}  // namespace paceline::cli
