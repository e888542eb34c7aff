#include "runtime/checkpoint/spec_hash.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"

namespace paceline::checkpoint {

namespace {

std::string serialized(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in the order of their keys
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// What the rows of sparse tables have beside their weights.
v1::ParameterServerSpec table_essence(const v1::TrainingSpec& spec) {
  v1::ParameterServerSpec essence;
  for (const v1::TableSpec& table : spec.parameter_server().tables()) {
    v1::TableSpec& kept = *essence.add_tables();
    kept.set_name(table.name());
    kept.mutable_optimizer()->set_type(table.optimizer().type());
  }
  return essence;
}

bool has_momentum(const v1::TrainingSpec& spec) {
  return spec.optimizer().type() == v1::OptimizerSpec::SGD && spec.optimizer().momentum() > 0;
}

}  // namespace

std::string spec_hash(const v1::TrainingSpec& spec) {
  v1::TrainingSpec essence;
  *essence.mutable_model() = spec.model();
  essence.mutable_optimizer()->set_type(spec.optimizer().type());
  essence.set_global_batch_size(spec.global_batch_size());
  essence.set_seed(spec.seed());
  essence.set_precision(spec.precision());
  if (spec.parameter_server().tables_size() > 0) *essence.mutable_parameter_server() = table_essence(spec);
  const std::string bytes = serialized(essence);
  const auto data = std::as_bytes(std::span(bytes));
  return absl::StrFormat("%08x%08x", crc32c(data), crc32c(data, 0x5bd1e995u));
}

std::vector<std::string> essential_differences(const v1::TrainingSpec& a, const v1::TrainingSpec& b) {
  std::vector<std::string> fields;
  const auto note = [&](bool differs, const char* field) {
    if (differs) fields.emplace_back(field);
  };
  note(serialized(a.model()) != serialized(b.model()), "spec.training.model");
  note(serialized(table_essence(a)) != serialized(table_essence(b)), "spec.training.model.tables");
  note(a.optimizer().type() != b.optimizer().type(), "spec.training.optimizer.type");
  note(a.optimizer().type() == b.optimizer().type() && has_momentum(a) != has_momentum(b),
       "spec.training.optimizer.momentum");
  note(serialized(a.data().normalization()) != serialized(b.data().normalization()),
       "spec.training.data.normalize");
  note(a.data().clicks().vocabularies_size() != b.data().clicks().vocabularies_size(),
       "spec.training.data.clicks.vocabularies");
  // Files that are a test set by themselves may be others.
  note(a.data().test_fraction() != b.data().test_fraction(), "spec.training.data.testFraction");
  if (a.data().test_fraction() > 0 && b.data().test_fraction() > 0) {
    const auto inputs = [](const v1::TrainingSpec& spec) -> const auto& {
      return spec.data().train().inputs();
    };
    note(!std::ranges::equal(inputs(a), inputs(b)), "spec.training.data.train.inputs");
    note(a.data().header() != b.data().header(), "spec.training.data.header");
    note(a.data().clicks().samples() != b.data().clicks().samples(), "spec.training.data.clicks.samples");
  }
  note(a.global_batch_size() != b.global_batch_size(), "spec.training.globalBatchSize");
  note(a.seed() != b.seed(), "spec.training.seed");
  note(a.precision() != b.precision(), "spec.training.precision");
  return fields;
}

}  // namespace paceline::checkpoint
