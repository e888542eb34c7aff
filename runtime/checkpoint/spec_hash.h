#pragma once

// What a checkpoint must have been made by to be continued by a job: the model, the kind of optimizer, the
// global batch, the seed and the precision. Lengths, rates, targets and places may differ. Pure.
//
// The hash, which is in every checkpoint's manifest and must not change, lacks two of them that decide which
// tensors there are: whether there is momentum, and how many categorical fields. It also lacks what decides,
// beside the seed, which samples are held out of the training set: a job with other ones would train on
// samples that it is evaluated on. And it lacks how inputs are normalized: a model that was trained on other
// numbers would have to learn anew. Where both specs are known essential_differences() names those, too;
// where only the hash is, the tensors tell of the first two.

#include <string>
#include <vector>

#include "proto/paceline/v1/training.pb.h"

namespace paceline::checkpoint {

// 16 hexadecimal digits, equal for specs without essential differences (but for those).
std::string spec_hash(const v1::TrainingSpec& spec);

// The fields of a job (spec.training.model, ...) by which a checkpoint of `a` can't be continued by `b`;
// empty: it can.
std::vector<std::string> essential_differences(const v1::TrainingSpec& a, const v1::TrainingSpec& b);

}  // namespace paceline::checkpoint
