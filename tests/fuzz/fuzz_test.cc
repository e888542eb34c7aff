// Each target with all inputs that are committed, and with mutations of them. PACELINE_FUZZ_SEED: other
// mutations than those of every run. Where one ends the program, the seed and the number of the mutation are
// printed, and its bytes are in the file that is named.
//
// The files seed-* of a target whose inputs are no text are made from binary_seeds():
//
//   PACELINE_UPDATE_CORPUS=1 build/asan/tests/fuzz_test --gtest_filter='*Committed*'

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/rng.h"
#include "base/text.h"
#include "tests/fuzz/target.h"
#include "tests/support/paths.h"

namespace paceline::fuzz {
namespace {

using Texts = std::vector<std::string>;

std::filesystem::path folder(const char* kind, const Target& target) {
  return std::filesystem::path(source_path("tests/fuzz")) / kind / target.name;
}

Texts files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  Texts texts;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// The input under way, for a program that ends with it.
struct {
  std::string text, file;
} current;

void keep_current(int) {
  std::ofstream(current.file, std::ios::binary) << current.text;
  std::fprintf(stderr, "fuzz_test: the input is in %s\n", current.file.c_str());
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void run(const Target& target, std::string text) {
  current.text = std::move(text);
  target.run(std::as_bytes(std::span(current.text)));
}

class Mutator {
 public:
  Mutator(const Texts& inputs, std::uint64_t seed) : inputs_(inputs), rng_(seed, 1) {}

  std::string next() {
    std::string text = any();
    for (std::uint64_t left = 1 + rng_.below(6); left > 0; --left) mutate(text);
    return text;
  }

 private:
  const std::string& any() { return inputs_[rng_.below(inputs_.size())]; }
  std::size_t place(const std::string& text) { return rng_.below(text.size() + 1); }
  std::string part(const std::string& text) {
    return text.substr(place(text), std::size_t{1} << rng_.below(8));
  }

  void mutate(std::string& text) {
    const std::size_t at = place(text);
    switch (rng_.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << rng_.below(8)));
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(rng_.below(256));
        return;
      case 2:
        text.erase(at, std::size_t{1} << rng_.below(6));
        return;
      case 3:
        text.insert(at, part(any()));
        return;
      case 4:
        text.insert(at, part(text));
        return;
      case 5: {  // a number at the edge of its type
        static constexpr std::string_view kEdges[] = {"\0\0\0\0\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff",
                                                      "\xff\xff\xff\xff\xff\xff\xff\x7f",
                                                      "\0\0\0\0\0\0\0\x80"};
        const std::size_t width = std::size_t{1} << rng_.below(4);
        const std::string_view edge(kEdges[rng_.below(std::size(kEdges))].data(), 8);
        text.replace(at, width, edge.substr(8 - width));
        return;
      }
      default: {
        static constexpr const char* kWords[] = {
            "-1",    "0",   "9223372036854775807", "1e999", "null", "[]", "{}", "\"\"", "\xff", "[[[[[[[[",
            "&a *a", "true"};
        text.replace(at, rng_.below(8), kWords[rng_.below(std::size(kWords))]);
        return;
      }
    }
  }

  const Texts& inputs_;
  Rng rng_;
};

class FuzzTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    target_ = target_named(GetParam());
    current.file = str_cat(::testing::TempDir(), "fuzz_test-", target_->name);
    before_ = std::signal(SIGABRT, keep_current);
  }
  void TearDown() override { std::signal(SIGABRT, before_); }

  const Target* target_ = nullptr;
  void (*before_)(int) = SIG_DFL;
};

TEST_P(FuzzTest, CommittedSeedsAreThoseOfTheCode) {
  const Texts seeds = binary_seeds(target_->name);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto path = folder("corpus", *target_) / str_cat("seed-", i);
    if (std::getenv("PACELINE_UPDATE_CORPUS") != nullptr) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << seeds[i];
    }
    std::ifstream in(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), seeds[i]) << path;
  }
}

TEST_P(FuzzTest, AnyBytesAreTaken) {
  Texts inputs = files_of(folder("corpus", *target_));
  ASSERT_FALSE(inputs.empty()) << "a target has seeds";
  std::ranges::move(files_of(folder("found", *target_)), std::back_inserter(inputs));
  run(*target_, "");
  for (const std::string& input : inputs) run(*target_, input);
  const char* const given = std::getenv("PACELINE_FUZZ_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  std::printf("%d mutations of %zu inputs, seed %llu\n", target_->mutations, inputs.size(),
              static_cast<unsigned long long>(seed));
  Mutator mutator(inputs, seed);
  for (int i = 0; i < target_->mutations; ++i) {
    SCOPED_TRACE(str_cat("mutation ", i));
    run(*target_, mutator.next());
  }
}

std::vector<const char*> names() {
  std::vector<const char*> names;
  for (const Target& target : targets()) names.push_back(target.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzTest, ::testing::ValuesIn(names()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace paceline::fuzz
