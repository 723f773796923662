package index

// synonyms are everyday words of English and Chinese, a line for those with about the
// same meaning: a question with one of them also finds the others. Chinese words have one
// or two characters.
const synonyms = `
address 地址 住址
airport 机场
allergy allergic 过敏
apartment flat 公寓
appointment 预约
aunt 阿姨 姑姑
baby 宝宝 婴儿
bag luggage suitcase baggage 行李 箱子
bank 银行
bathroom toilet 浴室 厕所
battery 电池
bedroom 卧室
bicycle bike cycling 单车
bill invoice 账单 发票
birthday birth 生日
blood 血
boat ship ferry 船 轮渡
book 书
boss manager 老板 领导
breakfast 早餐 早饭
brother 哥哥 弟弟
buy purchase order 买 购买
cake 蛋糕
camera 相机
car vehicle 汽车 车子
card 卡
cat 猫
child kid children 孩子 小孩
christmas 圣诞
clothes clothing 衣服
coffee 咖啡
colleague coworker 同事
colour color 颜色
company firm employer 公司
computer laptop pc 电脑
contract agreement 合同 协议
cost price fee charge pay expense 价格 费用 花费 价钱
dentist 牙医
dinner supper 晚饭 晚餐
discount rebate 折扣 打折
doctor dr gp physician 医生 大夫
dog puppy 狗
door 门
electricity power 电费
email mail 邮件 邮箱
exam test 考试
father dad 爸爸 父亲
film movie 电影
flight plane 航班 飞机
flower 花
food meal 食物 吃的
friend 朋友
garage 车库
garden yard 花园 院子
gas 燃气 煤气
gift present 礼物
glasses 眼镜
grandfather grandpa granddad 爷爷 外公
grandmother grandma granny 奶奶 外婆
guest visitor 客人
heating radiator boiler 暖气 供暖
height tall 身高
holiday vacation trip 假期 度假 旅行
home house 家里 房子
hospital clinic 医院 诊所
hotel 酒店 宾馆
husband 丈夫 老公
insurance 保险
internet network wifi wireless 网络 无线
job position role 工作 职位
key 钥匙
kitchen 厨房
landlord 房东
language 语言
lawyer solicitor attorney 律师
lesson class course 课 课程
letter 信
library 图书馆
licence license 执照 驾照
lunch 午饭 午餐
medicine medication drug tablet pill 药
meeting call 会议 开会
milk 牛奶
money cash 现金
mortgage loan 贷款 房贷
mother mum mom 妈妈 母亲
mountain hill 山
music song 音乐
name called 名字 姓名
neighbour neighbor 邻居
nurse 护士
nut peanut 坚果 花生
office 办公室
operation surgery 手术
parcel package 包裹 快递
parents 父母 爸妈
parking 停车
party celebration 聚会
passport 护照
password passcode code pin 密码
pet 宠物
phone telephone mobile 电话 手机
photo picture image 照片 图片
piano 钢琴
plant 植物
plumber 水管
police 警察
post mail 邮寄 邮局
printer 打印
project 项目
reason why 原因 理由
recipe 菜谱 食谱
refund 退款
remote 遥控
repair fix mend 修理 维修
restaurant 餐厅 饭店
salary wage income earn 工资 薪水
school 学校
seat 座位
shoe 鞋
shop store 商店
shower 淋浴
sister 姐姐 妹妹
size 尺码 尺寸
subscription membership 会员 订阅
swimming swim 游泳
tax 税
tea 茶
teacher 老师
tenant 租客 房客
ticket 门票 车票
tooth teeth 牙 牙齿
train railway 火车 高铁
tree 树
uncle 叔叔 舅舅
university college 大学
username login account 用户 账号
vaccination vaccine shot 疫苗
vegetable 蔬菜
visa 签证
warranty guarantee 保修 质保
watch 手表
water 水
wedding 婚礼 结婚
weight weigh 体重
wife 妻子 老婆
window 窗户 窗
wine 酒
percent percentage 百分
monday 周一
tuesday 周二
wednesday 周三
thursday 周四
friday 周五
saturday 周六
sunday 周日
`
