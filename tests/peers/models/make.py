"""python tests/peers/models/make.py DIR [NAME...]: small random models of transformers and torchvision, with what they make of
an input: DIR/NAME/config.json, model.safetensors, case.safetensors."""
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
SMALL = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64)
GROUPED = dict(SMALL, num_key_value_heads=2, initializer_range=0.3)


def rope(kind, theta=10000.0, **more):
    return dict(rope_type=kind, rope_theta=theta, **more)


# name: (class of the model, class of its config, fields)
CASES = {
    "bert": ("BertModel", "BertConfig", dict(SMALL, initializer_range=0.3)),
    "roberta": ("RobertaModel", "RobertaConfig", dict(SMALL, type_vocab_size=1, initializer_range=0.3)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "llama3": ("LlamaForCausalLM", "LlamaConfig", dict(
        GROUPED, tie_word_embeddings=True, head_dim=8, attention_bias=True, mlp_bias=True, rope_parameters=rope(
            "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16))),
    "llama_linear": ("LlamaForCausalLM", "LlamaConfig", dict(GROUPED, rope_parameters=rope("linear", factor=4.0))),
    "llama_yarn": ("LlamaForCausalLM", "LlamaConfig", dict(GROUPED, rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=16))),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(GROUPED, sliding_window=5)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", dict(GROUPED, use_sliding_window=True, sliding_window=5,
                                                      max_window_layers=1)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(GROUPED, head_dim=8, tie_word_embeddings=True)),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", dict(GROUPED, head_dim=8)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(GROUPED, head_dim=8, sliding_window=5, query_pre_attn_scalar=12,
                                                         attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(
        GROUPED, num_hidden_layers=3, head_dim=8, sliding_window=5, layer_types=[
            "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": rope("linear", 1e6, factor=8.0), "sliding_attention": rope("default")})),
}


CASES["gpt2"] = ("GPT2LMHeadModel", "GPT2Config", dict(
    vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=64, initializer_range=0.3,
    scale_attn_by_inverse_layer_idx=True))


VIT = dict(SMALL, image_size=(16, 24), patch_size=8, initializer_range=0.3)
del VIT["vocab_size"], VIT["max_position_embeddings"]
CASES["vit"] = ("ViTModel", "ViTConfig", VIT)
CASES["vit_classes"] = ("ViTForImageClassification", "ViTConfig", dict(VIT, num_labels=3, qkv_bias=False))


CASES["mamba"] = ("MambaForCausalLM", "MambaConfig", dict(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, state_size=4, initializer_range=0.3))
CASES["whisper"] = ("WhisperForConditionalGeneration", "WhisperConfig", dict(
    vocab_size=40, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4,
    encoder_ffn_dim=24, decoder_ffn_dim=20, num_mel_bins=6, max_source_positions=10, max_target_positions=20,
    init_std=0.3, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1))


ENCODER = dict(SMALL, hidden_size=8, num_attention_heads=2, num_hidden_layers=1, initializer_range=0.3)
CASES["bert_classes"] = ("BertForSequenceClassification", "BertConfig", dict(ENCODER, num_labels=3))
CASES["bert_tokens"] = ("BertForTokenClassification", "BertConfig", dict(ENCODER, num_labels=5))
CASES["bert_mask"] = ("BertForMaskedLM", "BertConfig", ENCODER)
CASES["roberta_classes"] = ("RobertaForSequenceClassification", "RobertaConfig", dict(ENCODER, num_labels=3))
CASES["roberta_mask"] = ("RobertaForMaskedLM", "RobertaConfig", ENCODER)
DISTILLED = dict(vocab_size=40, dim=8, hidden_dim=12, n_layers=2, n_heads=2, max_position_embeddings=64,
                 initializer_range=0.3)
CASES["distilbert"] = ("DistilBertModel", "DistilBertConfig", DISTILLED)
CASES["distilbert_classes"] = ("DistilBertForSequenceClassification", "DistilBertConfig", dict(DISTILLED, num_labels=3))
CASES["distilbert_mask"] = ("DistilBertForMaskedLM", "DistilBertConfig", DISTILLED)


def numbers(model, generator):
    """Normal numbers for what transformers starts with zeros and ones, too."""
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.data += 0.2 * torch.randn(p.shape, generator=generator)


def tokens(model, generator, encoder):
    case = {}
    for n in (1, 7, 13):
        ids = torch.randint(3, 40, (2, n), generator=generator)
        mask = torch.ones(2, n, dtype=torch.long)
        mask[1, (n + 1) // 2:] = 0
        for key, m in (("", None), ("masked", mask)):
            out = model(input_ids=ids, attention_mask=m)
            if encoder:
                case[f"hidden{key}{n}"] = out.last_hidden_state
                if hasattr(out, "pooler_output"):
                    case[f"pooled{key}{n}"] = out.pooler_output
            else:
                case[f"logits{key}{n}"] = out.logits
        case[f"ids{n}"], case[f"mask{n}"] = ids.int(), mask.int()
    return case


def images(model, generator, size):
    x = torch.randn(2, 3, *size, generator=generator)
    out = model(x)
    if hasattr(out, "pooler_output") and out.pooler_output is not None:
        return {"x": x, "hidden": out.last_hidden_state, "pooled": out.pooler_output}
    return {"x": x, "logits": getattr(out, "logits", out)}


def sounds(model, generator):
    x = torch.randn(2, 6, 20, generator=generator)
    ids = torch.randint(3, 40, (2, 13), generator=generator)
    out = model(input_features=x, decoder_input_ids=ids)
    wave = 0.3 * torch.randn(1, 3000, generator=generator)
    extract = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=2)
    mel = extract(wave[0].numpy(), sampling_rate=16000, return_tensors="pt").input_features
    return {"x": x, "ids13": ids.int(), "logits13": out.logits, "hidden": out.encoder_last_hidden_state, "wave": wave,
            "mel": mel[:, :, :40]}


DIFFUSION = {
    "unet": dict(in_channels=2, out_channels=1, block_out_channels=(4, 8), layers_per_block=1, norm_num_groups=2,
                 down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                 attention_head_dim=4),
    "unet_ddpm": dict(in_channels=1, out_channels=1, block_out_channels=(4, 4, 4), layers_per_block=1,
                      norm_num_groups=2, down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                      up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"), attention_head_dim=None,
                      downsample_padding=0, freq_shift=1, flip_sin_to_cos=False, norm_eps=1e-6, mid_block_scale_factor=1.5,
                      resnet_time_scale_shift="scale_shift", num_class_embeds=5, center_input_sample=True),
}


def diffusion(name, folder):
    from diffusers import UNet2DModel
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    fields = DIFFUSION[name]
    model = UNet2DModel(**fields).eval()
    numbers(model, generator)
    x = torch.randn(2, fields["in_channels"], 8, 16, generator=generator)
    times = torch.tensor([3, 700])
    labels = torch.tensor([4, 1]) if "num_class_embeds" in fields else None
    with torch.no_grad():
        y = model(x, times, class_labels=labels).sample
    model.save_pretrained(folder)
    save_file({"x": x, "times": times.int(), "y": y.contiguous()}, folder + "/case.safetensors")


class Speech(torch.nn.Module):
    """What models.speech is, in PyTorch."""

    def __init__(self, mels, channels, hidden, layers, classes):
        super().__init__()
        n = torch.nn
        self.conv = n.Sequential(n.Conv2d(1, channels, 3, stride=2, padding=1), n.BatchNorm2d(channels), n.ReLU(),
                                 n.Conv2d(channels, channels, 3, stride=(2, 1), padding=1), n.BatchNorm2d(channels),
                                 n.ReLU())
        self.rnn = n.LSTM(channels * ((mels + 3) // 4), hidden, layers, bidirectional=True)
        self.head = n.Linear(2 * hidden, classes)

    def forward(self, x):
        x = self.conv(x[:, None])
        y, _ = self.rnn(x.permute(3, 0, 1, 2).flatten(2))
        return self.head(y).log_softmax(-1)


def speech(folder):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Speech(10, 3, 6, 2, 5).eval()
    numbers(model, generator)
    x = torch.randn(2, 10, 21, generator=generator)
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        save_file({"x": x, "y": model(x)}, folder + "/case.safetensors")
    save_file(model.state_dict(), folder + "/model.safetensors")


def vision(name, make_model, folder, size=(64, 64)):
    """Networks of torchvision: too large to be kept, but for a small transformer."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = make_model().eval()
    numbers(model, generator)
    for key, p in model.named_buffers():
        if "running_mean" in key:
            p += 0.1 * torch.randn(p.shape, generator=generator)
        elif "running_var" in key:
            p += 0.5 * torch.rand(p.shape, generator=generator)
    if not any("running_var" in key for key, _ in model.named_buffers()):
        for p in model.parameters():
            p.data += 0.2 * torch.randn(p.shape, generator=generator)
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        case = images(model, generator, size)
    save_file(model.state_dict(), folder + "/model.safetensors")
    save_file({k: v.contiguous().clone() for k, v in case.items()}, folder + "/case.safetensors")


def of_torchvision():
    from torchvision import models as m
    return {
        "resnet18": lambda: m.resnet18(num_classes=10), "resnet50": lambda: m.resnet50(num_classes=10),
        "resnext50": lambda: m.resnext50_32x4d(num_classes=10),
        "mobilenet_v2": lambda: m.mobilenet_v2(num_classes=10, width_mult=0.5),
        "mobilenet_v3_small": lambda: m.mobilenet_v3_small(num_classes=10),
        "mobilenet_v3_large": lambda: m.mobilenet_v3_large(num_classes=10),
    }


def small_vision_transformer():
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=24,
                             num_classes=5)


def make(name, folder):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    kind, config, fields = CASES[name]
    model = getattr(transformers, kind)(getattr(transformers, config)(**fields)).eval()
    numbers(model, generator)
    os.makedirs(folder, exist_ok=True)
    model.save_pretrained(folder)
    with torch.no_grad():
        if kind.startswith("ViT"):
            case = images(model, generator, (16, 24))
        elif kind.startswith("Whisper"):
            case = sounds(model, generator)
        else:
            case = tokens(model, generator, kind in ("BertModel", "RobertaModel", "DistilBertModel"))
    save_file({k: v.contiguous().clone() for k, v in case.items()}, folder + "/case.safetensors")
    for extra in os.listdir(folder):
        if extra not in ("config.json", "model.safetensors", "case.safetensors"):
            os.remove(f"{folder}/{extra}")


def pictures(folder):
    """Gemma 3 with a part that sees, of which the part that writes is read."""
    torch.manual_seed(0)
    text = dict(GROUPED, head_dim=8, sliding_window=5)
    vision = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4,
                  model_type="siglip_vision_model")
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4,
                                       image_token_index=39, boi_token_index=37, eoi_token_index=38)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    numbers(model, torch.Generator().manual_seed(1))
    model.save_pretrained(folder)
    ids = torch.randint(3, 36, (2, 7))
    with torch.no_grad():
        save_file({"ids7": ids.int(), "logits7": model(input_ids=ids).logits.contiguous()}, folder + "/case.safetensors")
    if os.path.exists(folder + "/generation_config.json"):
        os.remove(folder + "/generation_config.json")


def adapters(folder, base):
    """Adapters of PEFT beside the model of another case."""
    from peft import LoraConfig, get_peft_model
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    model = get_peft_model(model, LoraConfig(r=2, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"],
                                             task_type="CAUSAL_LM")).eval()
    for name, p in model.named_parameters():
        if "lora_B" in name:
            p.data.normal_(0, 0.3)
    model.save_pretrained(folder)
    ids = torch.randint(3, 40, (2, 7))
    with torch.no_grad():
        save_file({"ids7": ids.int(), "logits7": model(ids).logits.contiguous()}, folder + "/case.safetensors")
    os.remove(folder + "/README.md")


# python make.py DIR kept: those alone that are kept in the repository.
if __name__ == "__main__":
    wanted, to = sys.argv[2:], sys.argv[1]
    for name in CASES:
        if not wanted or name in wanted or "kept" in wanted:
            make(name, f"{to}/{name}")
    if not wanted or "llama" in wanted or "kept" in wanted:
        adapters(f"{to}/llama_lora", f"{to}/llama")
    if not wanted or "vision_transformer" in wanted or "kept" in wanted:
        vision("vision_transformer", small_vision_transformer, f"{to}/vision_transformer", (16, 16))
    if not wanted or "gemma3_pictures" in wanted or "kept" in wanted:
        pictures(f"{to}/gemma3_pictures")
    for name in DIFFUSION:
        if not wanted or name in wanted or "kept" in wanted:
            diffusion(name, f"{to}/{name}")
    if not wanted or "speech" in wanted or "kept" in wanted:
        speech(f"{to}/speech")
    for name, make_model in of_torchvision().items():
        if not wanted or name in wanted:
            vision(name, make_model, f"{to}/{name}")
