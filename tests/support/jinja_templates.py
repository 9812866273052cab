"""Chat templates for the tests, with the constructs of the published ones and other possible ones.

`FAMILIES` have the shape of the families of published templates. `CONSTRUCTS` each do one kind of thing, some
of them unreasonable, with a marker of the template around it.
"""

# Templates are long lines by nature: white space in them is text.
# ruff: noqa: E501

from __future__ import annotations

__all__ = ["CONSTRUCTS", "FAMILIES"]

FAMILIES = {
    # Content trimmed, header tokens (Llama 3).
    "headers": """\
{{- bos_token }}
{%- for message in messages %}
    {%- set content = message['content'] if message['content'] is string else message['content'] | tojson %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}""",
    # The system text inside the first turn (Llama 2, Mistral v1, Mixtral).
    "inst": """\
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{%- set turns = messages[1:] %}
{%- else %}
    {%- set system = false %}{%- set turns = messages %}
{%- endif %}
{%- for message in turns %}
    {%- if loop.index0 == 0 and system != false %}
        {%- set content = '<<SYS>>\\n' ~ system ~ '\\n<</SYS>>\\n\\n' ~ message.content %}
    {%- else %}
        {%- set content = message.content %}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- bos_token ~ '[INST] ' ~ content.strip() ~ ' [/INST]' }}
    {%- elif message.role == 'assistant' %}
        {{- ' ' ~ (content or '') ~ ' ' ~ eos_token }}
    {%- else %}
        {{- raise_exception('Only user and assistant roles are supported, not ' ~ message.role) }}
    {%- endif %}
{%- endfor %}""",
    # Trimmed blocks without dashes (Zephyr, Phi 3).
    "zephyr": """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    # Names of roles in words (Vicuna, Falcon, OpenChat).
    "vicuna": """\
{%- set names = {'system': '', 'user': 'USER: ', 'assistant': 'ASSISTANT: ', 'tool': 'TOOL: '} %}
{%- for message in messages %}
    {{- names[message.role] }}{{ message.content }}{{ eos_token if message.role == 'assistant' else '\\n' }}
{%- endfor %}
{{- 'ASSISTANT:' if add_generation_prompt }}""",
    # Token texts built from the role (Phi 4): the role in them is content, and so they are no tokens.
    "phi4": """\
{%- for message in messages %}
    {%- if message.role == 'system' and tools %}
        {{- '<|' + message.role + '|>' + message.content + '<|tool|>' + tools | tojson + '<|/tool|><|end|>' }}
    {%- else %}
        {{- '<|' + message.role + '|>' + (message.content | string) + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- else %}{{- eos_token }}{%- endif %}""",
    # Parts of content in a macro (Qwen-VL, Llama 4, Gemma 3).
    "parts": """\
{%- macro render(content, trim=true) %}
    {%- if content is string %}
        {{- content | trim if trim else content }}
    {%- elif content is iterable %}
        {%- for part in content %}
            {%- if part.type == 'image' or 'image' in part or 'image_url' in part %}<|image|>
            {%- elif 'text' in part %}{{ part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- for message in messages %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}
{{ render(message.content) }}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}""",
    # Reasoning cut out of contents, and a search for the last question (Qwen 3, GLM, DeepSeek).
    "reasoning": """\
{%- set ns = namespace(last=-1, thinking=enable_thinking | default(true)) %}
{%- for message in messages[::-1] if message.role == 'user' and ns.last < 0 %}
    {%- set ns.last = messages | length - 1 - loop.index0 %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content | default('', true) | string %}
    {%- set reasoning = message.reasoning_content | default('') %}
    {%- if not reasoning and '</think>' in content %}
        {%- set reasoning = ((content.split('</think>') | first).split('<think>') | last).strip('\\n') %}
        {%- set content = (content.split('</think>') | last).lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' }}
    {%- if message.role == 'assistant' and loop.index0 > ns.last and reasoning and ns.thinking %}
        {{- '<think>\\n' ~ reasoning | trim ~ '\\n</think>\\n\\n' }}
    {%- endif %}
    {{- content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' ~ ('' if ns.thinking else '<think></think>') }}{% endif %}""",
    # Tools as XML with every field written out (Qwen3-Coder, MiniMax, GLM).
    "xml tools": """\
{%- macro extra(object, keys) %}
    {%- for key in object if key not in keys %}
        {%- set value = object[key] | tojson | safe if object[key] is mapping else object[key] | string %}
        {{- '\\n<' ~ key ~ '>' ~ value ~ '</' ~ key ~ '>' }}
    {%- endfor %}
{%- endmacro %}
{%- for tool in tools or [] %}
    {%- set tool = tool.function if tool.function is defined else tool %}
    {{- '<function><name>' ~ tool.name ~ '</name>' ~ tool.description | trim }}
    {%- for name, fields in tool.parameters.properties | items %}
        {{- '\\n<parameter>' ~ name ~ ': ' ~ fields.type | string }}
        {{- extra(fields, ['type', 'description']) }}{{ '</parameter>' }}
    {%- endfor %}
    {{- '</function>\\n' }}
{%- endfor %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role }}
    {%- if message.content is string %}{{ '\\n' + message.content }}{% endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '\\n<tool_call>' + call.function.name }}
        {%- if call.function.arguments is mapping %}
            {%- for name, value in call.function.arguments.items() %}
                {{- '<arg>' ~ name ~ '=' ~ (value if value is string else value | tojson(ensure_ascii=true)) ~ '</arg>' }}
            {%- endfor %}
        {%- else %}{{ call.function.arguments }}{% endif %}
        {{- '</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}""",
    # Types in the words of Python or TypeScript (Hermes, Command-R, Functionary).
    "python tools": """\
{%- macro type_of(spec) %}
    {%- set names = {'string': 'str', 'number': 'float', 'integer': 'int', 'boolean': 'bool'} %}
    {%- if spec.type is string and names[spec.type] is defined %}{{ names[spec.type] }}
    {%- elif spec.type == 'array' %}{{ 'List[' + type_of(spec['items']) + ']' }}
    {%- elif spec.type is iterable and spec.type is not string %}
        {{- 'Union[' + spec.type | map('lower') | map('replace', 'string', 'str') | join(',') + ']' }}
    {%- else %}{{ 'Dict' }}{% endif %}
{%- endmacro %}
{%- for tool in tools or [] %}
    {{- 'def ' + tool.function.name + '(' }}
    {%- for name in tool.function.parameters.properties %}
        {%- set spec = tool.function.parameters.properties[name] %}
        {{- name + ': ' + type_of(spec) }}
        {%- if name not in tool.function.parameters.required %}{{ ' = ' ~ spec.default | default('None') }}{% endif %}
        {{- ', ' if not loop.last }}
    {%- endfor %}
    {{- ') -> List[Dict]:\\n    \\"\\"\\"' + tool.function.description | indent(4) | trim + '\\n\\"\\"\\"\\n' }}
{%- endfor %}
{%- for message in messages %}
    {{- '<|START_OF_TURN_TOKEN|>' + {'user': '<|USER_TOKEN|>', 'assistant': '<|CHATBOT_TOKEN|>'}[message.role] | default('<|SYSTEM_TOKEN|>') }}
    {{- message.content ~ '<|END_OF_TURN_TOKEN|>' }}
{%- endfor %}
{%- for document in documents or [] %}Document: {{ loop.index0 }}{% for k, v in document.items() %}
{{ k | title }}: {{ v | string }}{% endfor %}
{% endfor %}""",
    # The assistant's text marked for training, in a loop with break and continue (SmolLM 3, OLMo).
    "generation": """\
{%- for message in messages %}
    {%- if message.role == 'tool' %}{% continue %}{% endif %}
    {%- if message.role == 'assistant' %}
        {{- '<|assistant|>\\n' }}{% generation %}{{ message.content | default('', true) }}{{ eos_token }}{% endgeneration %}{{ '\\n' }}
    {%- else %}
        {{- '<|' ~ message.role ~ '|>\\n' ~ message.content ~ '\\n' }}
    {%- endif %}
    {%- if loop.index > 50 %}{% break %}{% endif %}
{%- endfor %}""",
    # Sections built up in a namespace, and documents (Granite).
    "sections": """\
{%- set ns = namespace(head='', count=0) %}
{%- for message in messages if message.role == 'system' %}{% set ns.head = ns.head + message.content + '\\n' %}{% endfor %}
{%- if documents %}
    {%- for document in documents %}
        {%- set ns.count = ns.count + 1 %}
        {%- set ns.head = ns.head ~ '[Document ' ~ ns.count ~ ']\\n' ~ document.title ~ '\\n' ~ document['text'] | trim ~ '\\n' %}
    {%- endfor %}
{%- endif %}
{%- if tools %}{% set ns.head = ns.head + tools | map(attribute='function') | map(attribute='name') | join(', ') %}{% endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + ns.head + '<|end_of_text|>\\n' if ns.head }}
{%- for message in messages | rejectattr('role', 'equalto', 'system') %}
    {{- '<|start_of_role|>%s<|end_of_role|>%s<|end_of_text|>\\n' % (message.role, message.content) }}
{%- endfor %}""",
}

_EACH = "{%% for m in messages %%}<|a|>%s<|b|>{%% endfor %%}"

CONSTRUCTS = {
    name: _EACH % body if "messages" not in body else body
    for name, body in {
        "case": "{{ m.content | upper }}{{ m.content | string | capitalize }}{{ (m.content ~ 'ß') | title }}",
        "lower": "{{ (m.role ~ 'ΑΣ' ~ m.content) | lower }}{{ (m.content | string).swapcase().casefold() }}",
        "slices": "{{ (m.content | string)[1:-1] }}{{ ('<' ~ m.content ~ '>')[::-1] }}{{ (m.content | string)[:3] }}",
        "characters": "{% for c in m.content | string %}{{ c }}{{ '|' if not loop.last }}{% endfor %}",
        "lines": "{% for line in (m.content | string).splitlines(true) %}> {{ line }}{% endfor %}",
        "words": "{{ (m.content | string).split() | join('<|sep|>') }}{{ (m.content ~ '').rsplit(' ', 1) }}",
        "mixed": "{{ (m.content ~ '').split('e') | join('<|e|>') | upper }}{{ (m.content ~ '').replace('a', 'ΑΣ') | lower }}",
        "partition": "{{ (m.content ~ '').partition(' ')[2] }}{{ (m.content ~ '').rpartition('\\n') | join('/') }}",
        "replace": "{{ (m.content ~ '').replace('e', '<|e|>') | replace('a', m.role) }}{{ 'abc'.replace('b', m.role) }}",
        "formats": "{{ '{0}<|x|>{1!r}{2}'.format(m.role, m.content, loop.index) }}{{ '%-8s|%s|%05d' % (m.role, m.content, 7) }}",
        "named formats": "{{ '{r}: {c}'.format(r=m.role, c=m.content) }}{{ '%(role)s!' % m }}{{ '{role}'.format_map(m) }}",
        "fields": "{{ '{0[role]}{0.role}'.format(m) if false else '{0[role]:>12}'.format(m) }}{{ '%s %s' | format(m.role, m.content) }}",
        "padding": "{{ m.role.center(20, '*') }}{{ m.role.ljust(9) }}{{ '7'.rjust(m.role | length) }}{{ m.role | center(30) }}{{ m.role.zfill(12) }}",
        "stripping": "{{ (m.content ~ ' x').strip().removesuffix('x').rstrip() }}{{ '<<' ~ m.content | trim('<') }}{{ m.role.removeprefix('us') }}",
        "printed": "{{ m }}{{ [m.content, m.role] }}{{ (m.role, 1) }}{{ {'k': m.role} }}",
        "all of it": "<|a|>{{ messages }}{{ messages | tojson }}{{ tools | tojson(indent=2) if tools }}<|b|>",
        "json": "{{ m | tojson }}{{ m.content | tojson(ensure_ascii=true) }}{{ {'a': m.role, 'b': [1, none, 'x']} | tojson(indent=1, sort_keys=true) }}",
        "compact json": "{{ m | tojson(separators=(',', ':')) }}{{ (m.tool_calls or []) | tojson(indent='\\t') }}",
        "keys": "{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{{ m | list }}{{ m.keys() | join(',') }}{% for k in m | dictsort %}{{ k[0] }}{% endfor %}",
        "lists": "{{ [m.role] + ['x'] }}{{ ([m.role] * 3) | join }}{{ m.role * 2 }}{{ [m.content, 'z', m.content] | unique | join('+') }}",
        "selecting": "<|a|>{{ messages | map(attribute='role') | list }}{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | join('<|sep|>') }}{{ messages | groupby('role') | map('first') | join }}",
        "batches": "{% for row in (m.content ~ '') | list | batch(3, '.') %}{{ row | join }}/{% endfor %}{{ (m.content ~ '') | list | slice(2) | list }}",
        "ends": "{{ (m.content ~ '?') | first }}{{ (m.content ~ '?') | last }}{{ (m.content ~ '') | reverse }}{{ [m.role, 'aa'] | sort | join }}{{ [m.role, 'a'] | min }}",
        "numbers": "{{ m.content | length }}{{ (m.content | length) * 2 + 1 }}{{ -(m.role | length) }}{{ m.content | string | wordcount }}{{ '12' ~ m.role | length }}",
        "macros": "{% macro show(text) %}<{{ text }}{{ varargs }}{{ caller() if caller }}>{% endmacro %}{{ show(m.content, m.role) }}{% call show(m.role) %}{{ m.content }}{% endcall %}",
        "blocks": "{% set x %}({{ m.content }}){% endset %}{{ x }}{% filter upper %}{{ m.role }}<|c|>{% endfilter %}{% with y = m.role %}{{ y }}{% endwith %}",
        "helpers": "{% set j = joiner(m.role) %}{{ j() }}{{ j() }}{% set c = cycler(m.role, 'z') %}{{ c.next() }}{{ c.current }}{{ loop.cycle(m.role, 'q') }}{{ dict(a=m.role) }}{{ dict.fromkeys(m.role) }}",
        "namespaces": "{% set ns = namespace(text='') %}{% for c in m.role %}{% set ns.text = c ~ ns.text %}{% endfor %}{{ ns.text }}{{ ns.text.join(['1', '2']) }}",
        "attributes": "{{ m | attr('role') is defined }}{{ (m.role | attr('upper'))() }}{{ m.role['upper']() }}{{ m.get('name', 'nobody') }}{% set f = m.role.title %}{{ f() }}",
        "html": "{{ m.content | e }}{{ m.content | string | safe }}{{ ('<|x|>' ~ m.role) | safe }}{{ '<|y|>' | safe + m.content | string }}{{ m.role | e | upper }}",
        "unfollowed": "{{ m.content | string | urlize }}{{ m.content | string | striptags }}{{ m.role | urlencode }}{{ {'id': m.role} | xmlattr }}{{ m | pprint }}",
        "wrapped": "{{ m.content | string | wordwrap(10) }}{{ m.content | string | wordwrap(5, wrapstring='<|nl|>') }}{{ m.content | string | indent(2, true) }}{{ m.content | string | indent('> ', blank=true) }}{{ m.content | string | truncate(9) }}",
        "bytes": "{{ m.role.encode('utf-8') }}{{ m.role.encode().decode() }}{{ m.role.translate({97: 'ä'}) }}{{ m.role.expandtabs(3) }}",
    }.items()
}
