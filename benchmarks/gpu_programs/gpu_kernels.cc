// How fast the GPU's kernels are: each at a GPT-2's shapes (124M parameters, 1,024 tokens), in bf16, with the
// bytes that it must move beside the rate of a plain copy of the same run, or the operations of a product.
// Times are the GPU's own (events), of launches one behind the other.
//
//   gpu_kernels [--samples N] [--rounds N] [--json FILE] [--driver PATH] [--cublaslt PATH] [--tiny]

#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/whole_number.h"
#include "benchmarks/gpu_programs/gpu_bench.h"
#include "benchmarks/gpu_programs/subjects.h"

namespace paceline::cuda {
namespace {

absl::Status run(const Options& options) {
  PL_ASSIGN_OR_RETURN(const auto bench, Bench::open(options));
  PL_ASSIGN_OR_RETURN(const Subjects subjects, make_subjects(*bench, options));
  const DeviceFacts& device = bench->context()->device();
  std::printf("%s, %u samples of %u tokens\n%-36s %10s %10s %10s %12s %8s\n", device.name.c_str(),
              options.samples, options.time, "", "min us", "median", "max", "rate", "of copy");
  nlohmann::json report = {{"gpu", device.name}, {"samples", options.samples}, {"rounds", options.rounds}};
  double copy_rate = 0;
  for (const Subject& subject : subjects.all) {
    PL_ASSIGN_OR_RETURN(const Spread took, bench->time(subject, options.rounds));
    const bool moves = subject.bytes > 0;
    const double rate = (moves ? subject.bytes * 1e-9 : subject.operations * 1e-12) / (took.median * 1e-6);
    if (subject.name == "copy") copy_rate = rate;
    std::printf("%-36s %10.1f %10.1f %10.1f %8.1f %s", subject.name.c_str(), took.least, took.median,
                took.most, rate, moves ? "GB/s" : "TF/s");
    if (moves) std::printf(" %7.0f%%", 100 * rate / copy_rate);
    std::printf("\n");
    report["kernels"].push_back({{"name", subject.name},
                                 {"bytes", subject.bytes},
                                 {"operations", subject.operations},
                                 {"microseconds", {took.least, took.median, took.most}},
                                 {moves ? "gigabytesPerSecond" : "teraflops", rate},
                                 {"ofCopy", moves ? rate / copy_rate : 0}});
  }
  if (options.json.empty()) return absl::OkStatus();
  std::ofstream file(options.json);
  file << report.dump(2) << "\n";
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(str_cat("can't write ", options.json));
}

template <typename Number>
absl::Status take(const std::string& name, const std::string& text, Number most, Number& value) {
  if (const std::string fault = whole_number_fault<Number>(text, 1, most); !fault.empty())
    return absl::InvalidArgumentError(str_cat(name, ": ", fault));
  std::from_chars(text.data(), text.data() + text.size(), value);
  return absl::OkStatus();
}

absl::StatusOr<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--tiny") {
      options = {.samples = 1, .time = 4, .width = 96, .vocabulary = 64, .parameters = 4096, .rounds = 1};
      continue;
    }
    if (i + 1 == argc) return absl::InvalidArgumentError(str_cat("unknown or unfinished argument ", name));
    const std::string value = argv[++i];
    if (name == "--json") {
      options.json = value;
    } else if (name == "--driver") {
      options.driver = value;
    } else if (name == "--cublaslt") {
      options.cublaslt = value;
    } else if (name == "--samples") {
      PL_RETURN_IF_ERROR(take<std::uint32_t>(name, value, 64, options.samples));
    } else if (name == "--rounds") {
      PL_RETURN_IF_ERROR(take(name, value, 10'000, options.rounds));
    } else {
      return absl::InvalidArgumentError(str_cat("unknown argument ", name));
    }
  }
  return options;
}

}  // namespace
}  // namespace paceline::cuda

int main(int argc, char** argv) {
  const auto options = paceline::cuda::parse(argc, argv);
  const absl::Status status = options.ok() ? paceline::cuda::run(*options) : options.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu_kernels: %s\n", std::string(status.message()).c_str());
  return 1;
}
