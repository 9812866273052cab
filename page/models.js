/** The models that people look for, and where their tokenizers are: an encoding, or a repository of the Hugging Face hub. */

export const MODELS = [
  ["GPT-5, GPT-4.1, o3, o4-mini", "o200k_base"],
  ["GPT-4o, o1", "o200k_base"],
  ["gpt-oss", "o200k_harmony"],
  ["GPT-4, GPT-3.5, text-embedding-3", "cl100k_base"],
  ["Llama 3", "hf:NousResearch/Meta-Llama-3.1-8B-Instruct"],
  ["Qwen 3", "hf:Qwen/Qwen3-8B"],
  ["Mistral", "hf:mistralai/Mistral-Nemo-Instruct-2407"],
  ["DeepSeek", "hf:deepseek-ai/DeepSeek-V3"],
  ["GLM 4.5", "hf:zai-org/GLM-4.5"],
  ["Phi 4", "hf:microsoft/phi-4"],
  ["SmolLM 2", "hf:HuggingFaceTB/SmolLM2-1.7B-Instruct"],
  ["StarCoder 2", "hf:bigcode/starcoder2-7b"],
  ["Codex, text-davinci-002, text-davinci-003", "p50k_base"],
  ["GPT-3 edit", "p50k_edit"],
  ["GPT-3", "r50k_base"],
  ["GPT-2", "gpt2"],
].map(([label, name]) => ({ label, name }));
