#pragma once

// Opens the data sets of a job. The files' formats, shapes and errors are described in docs/trainingjob.md
// and in the reader of each format.
//
// Plain binary files are memory-mapped (members of one host share the page cache); gzipped ones are inflated
// into memory. A file that someone truncates while it is mapped kills the process (SIGBUS): replace files,
// don't rewrite them.
//
// Errors: DATA_LOSS (a file that is missing, can't be opened or isn't as it must be; names the file and the
// byte or line, what was found and what is allowed), INVALID_ARGUMENT (a field that isn't as it must be),
// RESOURCE_EXHAUSTED (a named limit, or memory).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/auc.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inspection.h"

namespace paceline::data {

struct Datasets {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;  // null: no held-out samples
  // The AUC that no model exceeds on the population of the samples, but by chance; null: nobody knows it.
  std::function<ExpectedAuc()> best_auc = nullptr;
  std::string warning = {};  // of files that are trained on and held out; empty: there is nothing to warn of
};

// A user's own data sets (`format: custom`), by name; `parameters` are the scalars under `custom.parameters`,
// as written.
using DatasetFactory = std::function<absl::StatusOr<Datasets>(
    const std::map<std::string, std::string>& parameters, std::uint64_t seed)>;
using DatasetFactories = std::map<std::string, DatasetFactory>;

struct OpenOptions {
  std::int64_t block_size = 0;  // tokens, text: tokens of one sample, > 0
  std::int64_t vocabulary_size =
      0;  // tokens, text, custom: > 0: a token that is not below it is an error; 0: unchecked
  std::int64_t classes = 0;  // custom: > 0: a label outside [0, classes) makes fetch() fail; 0: unchecked
  std::uint64_t seed = 0;    // decides the split by test_fraction
  int threads = 1;           // > 1: the files of one job are opened (inflated) at the same time
  DatasetFactories custom;
  std::uint64_t inspected_at_once = kInspectedAtOnceBytes;  // of files; the rest beside the training
};

absl::StatusOr<Datasets> open_datasets(const v1::DataSpec& spec, const OpenOptions& options);

}  // namespace paceline::data
