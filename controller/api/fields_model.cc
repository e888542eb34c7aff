// The fields under spec.training.model.

#include "controller/api/fields.h"

namespace paceline::api {

namespace {

void visit(FieldVisitor& v, RowOptimizer& o) {
  v.choice({.name = "type", .meaning = "The update rule of rows", .required = true}, o.type);
  const bool adagrad = o.type == RowOptimizerType::kAdagrad;
  const When adam{o.type == RowOptimizerType::kAdam, "type: Adam"},
      ftrl{o.type == RowOptimizerType::kFtrl, "type: FTRL"};
  v.number(
      {.name = "learningRate",
       .meaning = "FTRL: alpha; the others': times what optimizer.schedule makes of the job's, as a fraction",
       .required = true},
      kAboveZero, o.learning_rate);
  v.number(
      {.name = "momentum", .meaning = "0: none", .when = {o.type == RowOptimizerType::kSgd, "type: SGD"}},
      kBeta, o.momentum);
  v.number({.name = "beta1", .meaning = "Decay of the gradients' mean", .when = adam}, kBeta, o.beta1);
  v.number({.name = "beta2", .meaning = "Decay of the squared gradients' mean", .when = adam}, kBeta,
           o.beta2);
  v.number({.name = "epsilon",
            .meaning = "Added to the denominator; absent, of Adagrad: 1e-10",
            .when = {adam.applies || adagrad, "type: Adam, Adagrad"}},
           kAboveZero, adagrad ? o.adagrad_epsilon : o.epsilon);
  v.number(
      {.name = "beta",
       .meaning = "How large a row's gradients have to be, as the root of their squares' sum, to slow it "
                  "down",
       .when = ftrl},
      kAboveZero, o.beta);
  v.number({.name = "l1",
            .meaning = "Weights that the data does not ask for stay 0; as large as a sum of gradients",
            .when = ftrl},
           kNotNegative, o.l1);
  v.number({.name = "l2", .meaning = "Added to a weight's curvature, which pulls it towards 0", .when = ftrl},
           kNotNegative, o.l2);
}

void visit(FieldVisitor& v, Table& t) {
  v.object({.name = "optimizer", .meaning = "How a row takes its gradient"}, [&] { visit(v, t.optimizer); });
  v.integer({.name = "maxRows",
             .meaning = "So many rows at most, over all servers: a new one takes the place of an old one; 0: "
                        "no bound"},
            {.min = 0, .max = 1'000'000'000'000}, t.max_rows);
  v.choice({.name = "eviction",
            .meaning = "Which row goes: the one that was trained longest ago, or the one trained least often",
            .idle = t.max_rows == 0},
           t.eviction);
}

}  // namespace

void visit(FieldVisitor& v, Model& m) {
  v.choice(
      {.name = "type",
       .meaning =
           "mlp: fully connected layers; cnn: convolutions, then fully connected layers; gpt: a decoder-only "
           "transformer; custom: the command's own; wide-and-deep: weights and embeddings of categorical "
           "values, "
           "which lie on parameter servers",
       .required = true},
      m.type);
  const When cnn{m.type == ModelType::kCnn, "type: cnn"}, gpt{m.type == ModelType::kGpt, "type: gpt"},
      custom{m.type == ModelType::kCustom, "type: custom"},
      wide{m.type == ModelType::kWideAndDeep, "type: wide-and-deep"},
      classifier{cnn.applies || m.type == ModelType::kMlp, "type: mlp, cnn"},
      layered{classifier.applies || wide.applies, "type: mlp, cnn, wide-and-deep"};
  v.integers(
      {.name = "channels",
       .meaning =
           "Output channels of each convolution; each is followed by the activation and 2x2 max pooling",
       .required = true,
       .when = cnn},
      kWidth, {.min = 1, .max = 16}, m.channels);
  v.integer({.name = "kernelSize", .meaning = "Height and width of the convolutions' kernels", .when = cnn},
            {.min = 1, .max = 15, .odd = true}, m.kernel_size);
  v.integer({.name = "embedding",
             .meaning = "Floats of the embedding of a field's value",
             .required = true,
             .when = wide},
            {.min = 1, .max = 4096}, m.embedding);
  v.integers({.name = "hidden", .meaning = "Widths of the hidden fully connected layers", .when = layered},
             kWidth, {.min = 0, .max = 64}, m.hidden);
  v.choice({.name = "activation", .meaning = "What follows each layer but the last", .when = layered},
           m.activation);
  v.integer({.name = "classes",
             .meaning = "Number of classes, the width of the output",
             .required = true,
             .when = classifier},
            {.min = 2, .max = 1 << 20}, m.classes);
  v.integer({.name = "layers", .meaning = "Number of blocks", .required = true, .when = gpt},
            {.min = 1, .max = 1024}, m.layers);
  v.integer({.name = "heads",
             .meaning = "Attention heads of a block; they divide the width",
             .required = true,
             .when = gpt},
            {.min = 1, .max = 1024}, m.heads);
  v.integer({.name = "width", .meaning = "Length of a token's vector", .required = true, .when = gpt}, kWidth,
            m.width);
  v.integer({.name = "blockSize", .meaning = "Tokens of one sample", .required = true, .when = gpt},
            {.min = 1, .max = 1 << 20}, m.block_size);
  v.integer({.name = "vocabularySize", .meaning = "Number of different tokens; text has 256", .when = gpt},
            {.min = 2, .max = 1 << 24}, m.vocabulary_size);
  v.text({.name = "name",
          .meaning = "The name under which the command registers its model",
          .required = true,
          .when = custom},
         TextKind::kCustomName, m.name);
  v.parameters({.name = "parameters",
                .meaning = "Any scalars, handed to the model as they are written",
                .when = custom},
               m.parameters);
  const std::size_t crosses = v.begin_list(
      {.name = "crosses",
       .meaning = "Fields whose values together have a weight of their own, for each combination of values",
       .when = wide},
      m.crosses.size(), {.max = 1024});
  m.crosses.resize(crosses);
  for (std::size_t i = 0; i < crosses; ++i) {
    if (!v.begin_item(i)) continue;
    v.integers({.name = "fields",
                .meaning = "Their numbers in the data, from 0, in ascending order",
                .required = true},
               {.min = 0, .max = 1023}, {.min = 2, .max = 8}, m.crosses[i]);
    v.end();
  }
  v.end();
  v.object({.name = "tables",
            .meaning = "How the model's rows on the servers are trained, and how many there may be",
            .when = wide},
           [&] {
             v.object({.name = "wide",
                       .meaning = "Weights of values and of crosses; absent: trained by FTRL with "
                                  "learningRate 0.1 and beta 0.001"},
                      [&] { visit(v, m.tables.wide); });
             v.object({.name = "deep",
                       .meaning = "Embeddings of values; absent: trained by Adagrad with learningRate 0.05",
                       .same_as = "wide"},
                      [&] { visit(v, m.tables.deep); });
           });
}

}  // namespace paceline::api
